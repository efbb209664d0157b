"""Whether the draft budget is ever slower than no drafts; `command` leads."""
