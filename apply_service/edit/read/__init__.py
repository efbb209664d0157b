"""Reading an update: `snippet` chooses a format and makes the segments of `segment`.

`readings` says what else a lazy update may mean.
Formats: `lazy_format`, `plain_format` (`changed_stretch`, `definition_fragment`), `diff_format`
and `patch_format` (`hunk`), `block_format`.
Markers: `markers` tells one from text by `marker_phrases`; `marker_scan`, `inline_markers`,
`instruction_comments`, `removal_notes`. Around them: `fences`, `original_index`, `snippet_error`.
"""
