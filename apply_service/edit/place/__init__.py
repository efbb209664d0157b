"""What an update may mean, the likeliest merge first, and how certain that one is.

`merge` is the entrance and returns a plan: `exact_merges` where the update names the lines that it
replaces, otherwise `candidates` (places of each part, none weighed) → `features` (pure functions
with a name and one line of why) → `lattice` (the best ways through all parts, as texts and as
layers of `placement`s) → `score` (fitted trees, and the probability that the first merge is right).
`merge_findings` says why there is none; `sent_part` is a part as it was sent.
"""
