"""Measures how the cost of an edit grows along one axis at a time; see `command`."""
