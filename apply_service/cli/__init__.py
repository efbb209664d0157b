"""The command line: one file a command.

`main` parses and dispatches to `serve`, `engine`, `apply`, `key`, `model`, `cache`, `bench`,
`doctor` and `config_docs`.
`apply` works here (`local`) or on a server (`remote`) and writes with `file_writer`, whose promises
`careful_files` keeps; `asked` asks judge and writer. `demo` is `make demo`.
Terminal: `suggesting_parser`, `standard_streams`, `choice_prompt` (a question in doubt).
"""
