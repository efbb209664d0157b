"""Edits as text: pure functions over lines that need no model, no tokens and no I/O.

`text` compares, indexes and takes apart lines; `syntax` parses files and names definitions.
`read` finds the format of an update and makes segments of it. `forms` plans edits sent as JSON.
`split` cuts an update of several files at its files.
`place` says where each segment goes and merges; `verdict` judges results.
`regions` and `regional_update` cut out what a model has to see. `finding` is the form of what
checks report.
"""
