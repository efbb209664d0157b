"""What every system is to the runner."""

from __future__ import annotations

from typing import Protocol

from lazy_edit_bench.judge import Answer
from lazy_edit_bench.task import Dialect, Task


class System(Protocol):
    """Answers one task after another; `answer` may be called from several threads.

    `dialects` are those that the system speaks: others are scored as not offered.
    """

    name: str
    version: str
    command: str
    dialects: tuple[Dialect, ...]

    def answer(self, task: Task) -> Answer:
        """Answer one task; never raises for what the system itself does wrong."""

    def close(self) -> None:
        """End what the system started."""
