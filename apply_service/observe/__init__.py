"""What an operator sees: log, metrics, traces.

`request_record` collects one request, `request_log` writes it, `tracing` makes spans of it.
`log_format` formats lines, `private_text` keeps users' text out of them, and through a `log_stream`
nobody waits until they are read.
`telemetry` holds the metrics, with `engine_metrics`. `progress` shows how far long work is.
`free_memory` gives back what a process does not use any more.
"""
