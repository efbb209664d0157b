"""What is known of a candidate, of a candidate behind others, and of a whole merge, as numbers.

`feature` is the form: a pure function with a name and a line of why.
`candidate_features` (`alignment_features`, `place_features`) look at one segment in one place,
`step_features` at a candidate behind others, `merge_features` at a whole merge: its way
(`way_features`), names, text and what was sent in it (`update_shape`), `text_flaws` in it;
`certainty_features` at the first merge beside the others.
"""
