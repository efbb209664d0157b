"""The command line: one file a command.

`main` parses and dispatches to `serve` (`up` shows `connections` first), `engine`, `apply`,
`batch`, `undo`, `lsp`, `key`, `model`, `cache`, `bench`, `plan`, `doctor`, `completion`, `manual`
and `config_docs`.
`answer` answers an edit here (`local`) or on a server (`remote`); `asked` asks judge and writer.
`applying` is `apply`. `named_files` holds its update against its files; it writes with
`file_writer`, whose promises `careful_files` keeps, and remembers for `undo` in `last_write`.
`demo` is `make demo`. Terminal: `suggesting_parser`, `standard_streams`,
`shown_diff`, `hunk_review` (change by change).
"""
