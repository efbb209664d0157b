"""What is known of a candidate, of a candidate behind others, and of a whole merge, as numbers.

`feature` is the form: a pure function with a name and a line of why.
`candidate_features` (`alignment_features`, `place_features`) look at one segment in many places at
once (`candidate_table`, `members`), `step_features` at candidates behind others, `merge_features`
at a whole merge (`merge_view`): its way (`way_features`), text (`result_features`, `text_flaws`),
names (`name_features`), what was sent in it (`sent_features`, `update_shape`), and whether the
instruction speaks of it (`instruction_features`, `telling_words`);
`certainty_features` at the first merge beside the others.
"""
