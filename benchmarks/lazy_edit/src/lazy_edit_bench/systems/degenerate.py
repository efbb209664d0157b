"""Systems that know nothing. A benchmark in which one of them looks good is broken."""

from __future__ import annotations

import random

from lazy_edit_bench import __version__
from lazy_edit_bench.judge import Answer, file_text
from lazy_edit_bench.readers import is_marker
from lazy_edit_bench.task import DIALECTS, Task


class Degenerate:
    """One of `do-nothing`, `append`, `random-place`, `always-ask` and `always-refuse`."""

    dialects = DIALECTS
    version = __version__

    def __init__(self, name: str) -> None:
        self.name = name
        self.command = f"lazy-edit-bench run --system {name}"

    def answer(self, task: Task) -> Answer:
        """Answer without looking at what the update means."""
        text = file_text(task)
        if self.name == "always-ask":
            return Answer(status="asked")
        if self.name == "always-refuse":
            return Answer(status="refused")
        if self.name == "do-nothing":
            return Answer(status="applied", text=text)
        lines = [line for line in task.update.splitlines() if not is_marker(line)]
        new = "\n".join(lines) + "\n"
        if self.name == "append":
            return Answer(status="applied", text=text + new)
        old = text.splitlines(keepends=True)
        at = random.Random(task.id).randint(0, len(old))
        return Answer(status="applied", text="".join(old[:at]) + new + "".join(old[at:]))

    def close(self) -> None:
        """Nothing was started."""
