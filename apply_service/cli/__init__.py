"""The command line: one file a command.

`main` parses and dispatches to `serve` (`up` shows `connections` first), `engine`, `apply`, `undo`,
`lsp`, `key`, `model`, `cache`, `bench`, `doctor`, `completion`, `manual` and `config_docs`.
`answer` answers an edit here (`local`) or on a server (`remote`); `asked` asks judge and writer.
`apply` writes with `file_writer`, whose promises `careful_files` keeps. `demo` is `make demo`.
Terminal: `suggesting_parser`, `standard_streams`, `shown_diff`, `choice_prompt` (a question in
doubt), `hunk_review` (change by change).
"""
