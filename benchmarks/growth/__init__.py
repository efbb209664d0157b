"""How the cost of an edit grows along one axis at a time.

`command` measures the points of `axes` on files of `sized_file`; `plot` draws.
"""
