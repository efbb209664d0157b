"""Lazy updates as agents write them: `writer` makes clear ones, `terse_snippets` brief ones.

`hunks` finds what changed, `anchors` and `definitions` choose what is shown around it.
`marker_forms` writes the markers, `written_segments` says what an update makes of its original.
`terse_views` chooses the little that brief updates show.
"""
