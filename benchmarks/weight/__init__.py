"""What a clone and the wheel weigh; `command` leads."""
