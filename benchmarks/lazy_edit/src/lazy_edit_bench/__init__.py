"""A benchmark of lazy edits: a file, an update as agents write it, and what must come of it.

Reading order: `task` (what is asked), `dialects` (how updates are written), `readers` (a second
merger that checks the answers), `corpus` (edits to tasks to splits), `systems` (who answers),
`judge` (what an answer is worth), `run`, `figures`, `report`. `generator` and `sources` make tasks
of files that are fetched; `speed` uses tasks as a load.
"""

__version__ = "1.0.0"
