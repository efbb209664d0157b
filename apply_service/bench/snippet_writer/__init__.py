"""Writes lazy updates for real edits: `snippets` is the writer, the rest are its parts.

`hunks` finds what changed, `anchors` and `definitions` choose what is shown around it,
`marker_forms` writes the markers.
"""
