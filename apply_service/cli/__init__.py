"""The command line: one file a command.

`main` parses and dispatches; `serve`, `apply`, `key`, `model`, `cache`, `doctor`, `config_docs`.
`apply` works here (`local`) or on a server (`remote`) and writes with `file_writer`, whose promises
`careful_files` keeps. `demo` is `make demo`.
Terminal: `suggesting_parser`, `standard_streams`, `progress`.
"""
