"""The k best merges: candidates of all parts of an update, searched in order with fitted scores.

`beam` finds the best ways through all parts, `merged_text` writes the text that one way gives.
`merges` does both for each reading of the update; `moved_definitions` reads one as a move.
`layers` puts the best merges into the form that verdict and `lookup` read.
"""
