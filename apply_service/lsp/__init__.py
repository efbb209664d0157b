"""Edits in an editor's buffers, by the Language Server Protocol; needs pygls (extra `lsp`).

`server` has the commands; `protocol_edits` makes the protocol's edits, diagnostics and questions;
`clipboard` reads what was copied.
"""
