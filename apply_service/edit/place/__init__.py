"""Where segments go, and whether the result may be trusted.

`merge` asks `merge_planner` for a `placement` of every segment; `path_search` joins them.
Places: `lazy_placements`, `explicit_placements`, `order_placements`, `removals`.
Likelihood: `placement_features`, `placement_ranking`, `placement_trees`.
Judgement: `verdict` compares (`comparison`) by `checks`, `loss_checks`, `place_checks`.
"""
