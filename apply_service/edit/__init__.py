"""Text in, text out: `text_file` (bytes and newlines), `markers`, `verdict`, `diff`.

Behind the verdict: `comparison` (three texts side by side), `checks` (one a finding code)."""
