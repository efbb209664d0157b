"""A judge: a server of the user's own that names the choice which an edit in doubt means.

`judge` asks it within its time and budget and hears no more than one letter. `question` is what it
is asked; `answer_form` how a server is bound to a letter, `reply` reads it, `word` is what it said.
`second_opinion` lets it settle edits. `from_settings` makes one judge of the settings.
"""
