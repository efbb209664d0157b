"""Every place where the lines of a segment may go; what a later score does not choose costs little.

`filled_lines` is a text without its blank lines, `original_facts` adds what its syntax tells, as
arrays too (`line_arrays`).
`rows` are a segment as lines to find and to write; `row_matcher` aligns them with the original.
`spans` proposes lines [start, end) that may give way, `candidate` is a span with what is written.
`candidate_source` makes all of one segment, `parts` of all segments and removals (`part`).
`way` is a candidate for each part.
"""
