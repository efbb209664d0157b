"""The display of a batch while it runs, and its summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TimeRemainingColumn,
)
from rich.text import Text

from apply_client.batch.edits_file import StepEdit
from apply_client.batch.journal import StepOutcome
from apply_client.errors import ApplyClientError
from apply_client.shown_text import shown

_QUIET_STATUSES = frozenset({"applied", "unchanged", "added", "removed"})


class _RateColumn(ProgressColumn):
    """Edits of this run by second or, if they are slow, by minute."""

    def render(self, task: Task) -> Text:
        """The rate as soon as it is known."""
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("-/s")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{60 * speed:.1f}/min")


class BatchProgress:
    """A bar with rate and remaining time on a terminal, and lines for edits that need a look."""

    def __init__(self, console: Console, *, num_steps: int, num_done: int) -> None:
        self._console = console
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal or console.is_dumb_terminal,
        )
        self._task = self._progress.add_task("edits", total=num_steps, completed=num_done)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def report(self, edit: StepEdit, outcome: StepOutcome | ApplyClientError) -> None:
        """Count one step that is finished, or that has to be left unfinished."""
        if isinstance(outcome, ApplyClientError):
            self.say(f"{edit.label}: unfinished: {outcome}")
            return
        self._progress.advance(self._task)
        if outcome.status in _QUIET_STATUSES and not outcome.message:
            return
        written = " (written)" if outcome.is_written else ""
        message = f": {outcome.message}" if outcome.message else ""
        self.say(f"{edit.label}: {outcome.status.replace('_', ' ')}{written}{message}")
        for finding in outcome.findings:
            self.say(f"  {finding.severity} {finding.code}: {finding.message}")
            self.say(f"    {finding.hint}")

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        self._console.print(shown(text), markup=False, highlight=False, soft_wrap=True)


def summary_of(outcomes: Iterable[StepOutcome], *, num_steps: int) -> str:
    """Summarise a batch in one line: the number of edits, and of each verdict."""
    counts = Counter(outcome.status for outcome in outcomes)
    parts = [f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items())]
    num_left = num_steps - counts.total()
    if num_left:
        parts.append(f"{num_left} not done yet")
    edits = "1 edit" if num_steps == 1 else f"{num_steps} edits"
    return f"{edits}: {', '.join(parts) or 'nothing to do'}"
