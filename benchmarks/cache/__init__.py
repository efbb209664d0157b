"""What the prefix cache saves over one process and over several; `command` leads."""
