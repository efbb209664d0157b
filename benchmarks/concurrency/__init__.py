"""Measures if the draft budget is ever slower than no drafts; see `command`."""
