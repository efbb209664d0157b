"""Text in, text out: `text_file` (bytes and newlines), `markers`, `verdict`, `diff`."""
