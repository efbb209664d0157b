"""Shows how far long work is, on a terminal only: a bar with its stage, and lines above it.

`rich` draws, and is imported when there is a bar: commands without one do not pay for it.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO, TypeVar

from apply_service.shown_text import shown_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_BAR_WIDTH = 24
# Often enough to be alive, too seldom to cost what works beside it anything.
_DRAWN_EACH_S = 0.25

Item = TypeVar("Item")


class Progress:
    """Shows the stage of work whose end is known or not, and cleans up after itself.

    While a bar is shown, whatever is printed to a standard stream on the terminal stands above it.
    """

    def __init__(self, stream: TextIO, *, has_clock: bool = True) -> None:
        """Without `has_clock` no thread draws: the bar stands still between calls."""
        self._stream = stream
        self._has_clock = has_clock
        self._is_shown = stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
        self._bar: Bar | None = None
        self._stage = ""
        self._num_lines = 0

    def show_stage(self, stage: str) -> None:
        """Say what is being done now, of which nobody knows how long it takes."""
        self._stage = stage
        self._show(stage, "", None)

    def show_share(self, share: float) -> None:
        """Say how much of the stage is done, from 0 to 1."""
        self._show(self._stage, f"{share:.0%}", share)

    def show_item(self, name: str, number: int, num_items: int) -> None:
        """Say which of how many items is at work; the first has the number 1."""
        self._show(name, f"{number} of {num_items}", (number - 1) / num_items)

    def show_text(self, text: str) -> None:
        """Count the lines of the answer while they come in."""
        self._num_lines += text.count("\n")
        self.show_stage(f"writing line {self._num_lines + 1}")

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        if self._bar is not None:
            self._bar.stop()
            atexit.unregister(self.clear)
            self._bar = None

    def _show(self, stage: str, amount: str, share: float | None) -> None:
        if not self._is_shown:
            return
        is_new = self._bar is None
        if self._bar is None:
            self._bar = self._make_bar()
            atexit.register(self.clear)  # a terminal gets its cursor back in any case
        (task,) = self._bar.task_ids
        if share is None and self._bar.tasks[0].total is not None:
            self._bar.reset(task, total=None)
        total = None if share is None else 1.0
        self._bar.update(
            task, description=shown_line(stage), amount=amount, total=total, completed=share or 0
        )
        if is_new:
            self._bar.start()
        elif not self._has_clock:
            self._bar.refresh()

    def _make_bar(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        bar = Bar(
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self._stream),
            auto_refresh=self._has_clock,
            refresh_per_second=1 / _DRAWN_EACH_S,
            redirect_stdout=sys.stdout.isatty(),
            transient=True,
        )
        bar.add_task("", total=None, amount="")
        return bar


def tracked(
    items: Sequence[Item], *, name: Callable[[Item], str] = str, stream: TextIO | None = None
) -> Iterator[Item]:
    """Go through items and show, by default on stderr, which one is at work.

    It draws between items alone, so that nothing runs beside what may be timed.
    """
    progress = Progress(stream or sys.stderr, has_clock=False)
    try:
        for number, item in enumerate(items, start=1):
            progress.show_item(name(item), number, len(items))
            yield item
    finally:
        progress.clear()
