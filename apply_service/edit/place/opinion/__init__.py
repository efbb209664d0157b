"""A second opinion: a merger with its own places, weights and order, and no fitted score of merges.

`second_opinion` is the entrance. `merge_planner` asks `lazy_placements` and `order_placements` for
the places of each segment, weighed by `placement_ranking` and `placement_trees`; `path_search`
joins the best ones. Its agreement is evidence; what it says is never returned by itself.
"""
