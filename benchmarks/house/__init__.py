"""Two states of the repository side by side: `command` leads, `traced_request` follows an edit."""
