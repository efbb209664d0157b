"""The picture of the README, drawn from a real answer; `command` leads."""
