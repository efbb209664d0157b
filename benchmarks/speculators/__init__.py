"""What drafters bring on a real model: edits, new code and talk, each beside no drafts at all.

`tasks` are what is asked, `contenders` answer it, `figures` adds up, `command` is the command.
"""
