"""The command line `apply-client`; `apply_client.__main__` reads it.

- apply.py, undo.py, batch.py, status.py, mcp.py, shell_files.py  commands
- service_flags.py                       flags of several commands
- several_files.py, edit_report.py       several files of `apply`; what it says and writes
- choice_prompt.py                       a question in doubt, at a terminal
- named_files.py, last_write.py          files of an update; what `undo` takes back
- shown_diff.py, hunk_review.py          diffs in colours; changes one by one
- exit_codes.py                          exit codes
- suggesting_parser.py                   a parser that suggests the word that was meant
- standard_streams.py                    streams that are closed, full or not UTF-8
"""
