"""Edits in the forms of agents' tools: old and new strings, named lines, JSON Patch.

`read_form` makes edits of what was sent, `plan_form` finds what they may mean. No model is needed.
"""
