"""What an operator sees: log, metrics, traces.

`request_record` collects one request, `request_log` writes it, `tracing` makes spans of it.
`log_format` formats lines, `log_stream` writes them, `private_text` keeps users' text out of them.
`telemetry` holds the metrics, with `engine_metrics`. `progress` shows how far long work is.
`free_memory` gives back what a process does not use any more.
"""
