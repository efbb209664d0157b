"""Writes lazy updates for real edits: `snippets` clear ones, `terse_snippets` brief ones.

`hunks` finds what changed, `anchors` and `definitions` choose what is shown around it,
`marker_forms` writes the markers, `written_segments` says what an update makes of its original.
For brief updates `terse_views` chooses the little that is shown.
"""
