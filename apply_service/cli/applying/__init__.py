"""`apply-service apply`: `command` reads the flags and edits one file, `several_files` more.

`edit_input` reads files and makes requests, `asking` has them answered and asks in doubt with
`choice_prompt`, `edit_report` says what came and writes it.
"""
