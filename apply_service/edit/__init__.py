"""An update understood as text: pure functions over lines, without a model, tokens or I/O.

Files and results: `text_file` (bytes, newlines), `diff`, `text_edits`, `splice`, `file_names`.
Reading an update: `snippet` chooses the format of `lazy_format`, `plain_format`, `fragment`,
`diff_format`, `block_format` or `patch_format` and makes the segments of `segment`; they use
`fences`, `markers` (with `marker_phrases`, `marker_scan`, `inline_markers`), `removal_notes`,
`instruction_comments`, `hunk`, `hunk_header`, `sections`, `original_index` and `snippet_error`.
Syntax: `syntax` parses with the grammars of `grammars` and `languages` by `tree_walk`,
`symbol_rules` and `grammar_rules`; `symbol`, `definitions` and `definition_names` name things,
`frame_words`, `accessors` and `hostile_source` are its helpers at the edges.
Merging: `merge` asks `merge_planner` for placements (`placement`) of all segments.
`explicit_placements` finds named old lines, `lazy_placements` the places of lazy segments, from
`line_index`, `runs`, `chains`, `segment_borders`, `insertions` and `lazy_places`; `similarity`,
`balance` and `indentation` serve these, `new_definitions` says which lines tell no place, `renames`
what had another name, `segment_nesting` (by `block_bounds`) in which block a segment stands,
`left_out_lines` what becomes of lines beyond an update that has no marker there.
`placement_change`, `placement_features` and `placement_ranking` say how likely a place is,
`placement_layer` and `placement_trees` how likely beside its rivals, `empty_gaps` whether it leaves
a marker anything, `sound_merges` whether it keeps the syntax; `order_placements` guesses, by
`definition_levels` and by the `variants` of old lines (`word_weights`), `removals` and
`removal_context` follow directives, `path_search` puts a merge together, `merge_findings` tells the
doubts. `valid_merge` defines what all of them look for. `likeness` compares letters, `work_budget`
counts what is compared and ends it.
`regions` and `regional_update` cut out what a model has to see.
Judging: `verdict` compares the three texts (`comparison`, `alignment`, `blank_lines`) by `checks`,
`loss_checks` and `place_checks`; `finding` is what they report.
"""
