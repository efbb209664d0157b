"""Every place where the lines of a segment may go; what a later score does not choose costs little.

`filled_lines` is a text without its blank lines, `rows` a segment as lines to find and to write.
`row_matcher` compares the rows with the lines of the original and aligns them.
`spans` proposes lines [start, end) that may give way; `candidate` is a span with what is written.
`candidate_source` puts them together for one segment.
"""
