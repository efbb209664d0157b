"""Token ids in, drafts out; plain Python.

`proposer` is the border to the engine. `edit_proposer` drafts for an edit: it follows a cursor
through the references (`reference`) along the way that `segment_plan` expects, and searches them
with `suffix_automaton` when the model leaves that way.

`constraint` is what a request may carry to bind its answer. `merge_grammar` binds it to the valid
merges of an edit (`merge_rules`): `merge_automaton` simulates all readings of what was written,
`placement_table` knows what can still be placed and `merge_prediction` the likeliest way on.
`byte_merge_grammar` is the same for tokens that cross lines (`byte_plan`, `vocabulary_index`).
"""
