"""Replaces, adds and removes files in one step, and loses nobody's update.

`anchored_folder` is a folder held open, `atomic_file` changes a file in it, `file_rights` are what
a new file takes over from the old one, `file_lock` and `linux_rename` wrap the platform's means.
These modules stand twice, word for word, in `apply_client` and in `apply_service`, which know each
other by HTTP alone and are installed apart; a test holds the two to each other.
"""
