"""`/v1/messages`, Anthropic's API: `schemas`, `reading` (bodies), `form` (answers and events)."""
