"""What is known of a candidate, of a candidate behind others, and of a whole merge, as numbers.

`feature` is the form: a pure function with a name and a line of why.
`candidate_features` (`alignment_features`, `place_features`) look at one segment in one place,
`step_features` at a candidate behind others, `merge_features` at the text that comes out
(`result_features`, `text_flaws`) and at what was sent in it (`sent_features`, `update_shape`),
`certainty_features` at the first merge beside the others and a second opinion.
"""
