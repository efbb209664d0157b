"""End-to-end time of whole answers, ours against rivals; `command` leads."""
