"""`/v1/responses`, OpenAI's newer API: `schemas`, `reading` (bodies), `form` (answers, events)."""
