"""Where segments go, and whether the result may be trusted.

`merge` asks `merge_planner` for a `placement` of every segment; `path_search` joins them.
Places: `lazy_placements`, `explicit_placements`, `order_placements`, `removals`.
Weight: `placement_ranking` (fitted to `placement_features`), corrected by `placement_trees`.
Judgement: `verdict` compares (`comparison`) by `checks`, `loss_checks`, `double_checks`,
`place_checks` and `syntax_check`. Messages and hints stand beside each check; those of a merge plan
in `merge_findings`.
`candidates` is the first room of the layer that follows.
"""
