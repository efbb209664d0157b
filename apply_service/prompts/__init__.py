"""Text to prompt token ids and back, one file a profile: `embedded`, `fastapply`, `chat`."""
