"""API keys: `key_file` on disk, `key_ring` in a running server, `caller`, `authentication`."""
