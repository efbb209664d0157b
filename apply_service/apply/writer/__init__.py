"""A writer: a server of the user's own that writes where the served model would.

`writing` lets it write an edit, and judges what it wrote. `task` is what it is asked, region by
region; `answer_form` how a server is bound to the merges, with `grammar`; `writer` asks it and
reads the texts. `from_settings` makes one writer of the settings.
"""
