"""Edits that are made from real files for the fit of merges, one kind a file.

`clones`, `definitions`, `small_files`, `wraps`; `sloppy` writes updates in a worse form.
`small_edits` makes the small edits that models write daily, by syntax trees.
"""
