"""Edits of the files below one folder, and of nothing else.

- folder.py        reads and writes files; path_name.py and place.py keep names inside the folder
- open_file.py     one file of this machine; errors.py what can be wrong with a file
- write_policy.py  which results are written
- edits.py         several edits; file_run.py those of one file, patch_run.py those of one patch
- patch_split.py   patches of several files, taken apart; edit_report.py what became of each edit
"""
