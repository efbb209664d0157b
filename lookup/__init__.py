"""Token ids in, drafts out; plain Python: `proposer`, `suffix_automaton`, `reference`, `edit_proposer`."""
