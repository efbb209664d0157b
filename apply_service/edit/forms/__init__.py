"""Edits in the forms of agents' tools: old and new strings, named lines, JSON Patch.

`form_reader` makes a `form` of what was sent, `form_plan` finds what it may mean. No model is
needed. Kinds: `string_edits`, `line_edits` (by number or hash), `json_patch`; each returns a
`reading`.
"""
