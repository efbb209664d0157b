"""How likely a candidate, a step or a merge is: fitted trees, and what they say of one update.

`tree_score` reads the stored trees (`merge_scores.msgpack`), which `forest` adds up;
`ranked_merges` puts the merges of an update in order and says how certain the first one is.
"""
