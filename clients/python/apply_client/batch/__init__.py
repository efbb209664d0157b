"""Many edits in one run, which can be killed at any time and continued by a restart.

- edits_file.py    EDITS.jsonl, checked whole before the first edit
- work.py          the edits of each file in order, files side by side; progress.py what is printed
- journal.py       what is done so far, on disk; store.py where files are read and results go
- questions.py     doubts as lines, and their answers
- patch_writer.py  all results as one patch for `git apply`
"""
