"""The user's own measuring tools: `drafters`, `speed`."""
