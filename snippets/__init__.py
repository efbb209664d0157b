"""Lazy updates as agents write them: `writer` makes clear ones, `terse_snippets` brief ones.

`hunks` finds the changes, `anchors` and `definitions` choose the lines shown around them.
`marker_forms` writes the markers, `written_segments` applies an update to its original.
`terse_views` chooses the few lines that brief updates show.
"""
