"""The service: HTTP and command line in, merged files and verdicts out.

`routes` (wire formats) → `pipeline` → `edit` (text) and `prompts` (tokens) → `batching`."""
