"""How the cost of an edit grows along one axis at a time; `command` leads."""
