"""Token ids in, drafts out; plain Python.

`proposer` is the border to the engine. `edit_proposer` drafts for an edit: it follows a cursor
through the references (`reference`) along the way that `segment_plan` expects, and searches them
with `suffix_automaton` when the model leaves that way.
"""
