"""Token ids in, drafts out; plain Python.

Drafts: `proposer` is the border to the engine. `edit_proposer` follows a cursor through a
`reference` along the way of `segment_plan`; `suffix_automaton` finds it again when it is lost.
Several ways at once: `draft_tree`. How long drafts pay: `draft_budget`, from `acceptance` (how
often they held); `row_planner` of `batching` asks it.
Constraint: `constraint` binds an answer; `merge_grammar` binds it to the valid merges of
`merge_rules`, which `merge_automaton` reads. `byte_merge_grammar` is the same for tokens that cross
lines (`byte_plan`, `vocabulary_index`).
"""
