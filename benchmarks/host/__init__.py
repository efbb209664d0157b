"""What a step costs the host beside its pass; `command` leads."""
