"""`make demo`: `__main__` leads, `local_server` serves, `edit_client` asks, `screen` shows.

`example` holds the file, its lazy update and the merge that is expected.
"""
