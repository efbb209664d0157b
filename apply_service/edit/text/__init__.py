"""Lines and words of any language.

Files: `text_file` (bytes and newlines), `diff`, `text_edits`; `lone_surrogates` in decoded JSON.
Likeness: `alignment`, `similarity`. Shape: `indentation`, `blank_lines`, `brackets`,
`block_bounds`, `alternatives`. Names by the look of a line: `words`, `definition_names`.
`line_index` finds lines; `work_budget` limits the number of comparisons.
"""
