"""A benchmark of lazy edits: a file, an update as agents write it, and what must come of it.

`task` (what is asked), `languages`, `kinds` (of edits), `dialects` (of updates), `readers` (a
second merger that checks the answers), `near_duplicates`, `corpus` (edits to tasks to splits);
`sources` (fetched files) and `generator` make more. `systems` answer, `run` asks them, `judge` says
what an answer is worth, `result_file`, `figures`, `tables` and `report` show it; `speed`; `cli`.
"""

__version__ = "1.0.0"
