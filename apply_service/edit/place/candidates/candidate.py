"""A place where a segment may go, and what is written there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from apply_service.edit.place.candidates.filled_lines import FilledLines, moved
from apply_service.edit.place.candidates.rows import Row

Origin = Literal["alignment", "run", "block", "frame", "insertion"]


class KeptRun(msgspec.Struct, frozen=True, order=True, gc=False):
    """Lines [start, end) of the original that stay in front of a row of the segment."""

    row: int
    start: int
    end: int


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A segment, moved by `shift` columns, in the place of filled lines [start, end).

    Nothing gives way if start == end. `kept` runs of the lines in between stay, rows in `dropped`
    are not written. With `row_shifts` each row is moved by columns of its own. `pairs` of a row and
    a line are the best alignment within the span.
    """

    start: int
    end: int
    shift: int = 0
    row_shifts: tuple[int, ...] = ()
    kept: tuple[KeptRun, ...] = ()
    dropped: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    origins: frozenset[Origin] = frozenset()

    def written(self, rows: Sequence[Row], original: FilledLines) -> list[str]:
        """The lines that stand in the place of [start, end), without blank ones."""
        kept: dict[int, list[str]] = {}
        for run in self.kept:
            kept.setdefault(run.row, []).extend(original.lines[run.start : run.end])
        lines: list[str] = []
        for number, row in enumerate(rows):
            lines += kept.get(number, ())
            if row.is_written and number not in self.dropped:
                lines.append(moved(row.text, self.shift_of(number)))
        return lines

    def shift_of(self, row: int) -> int:
        """By how many columns a row is moved."""
        return self.row_shifts[row] if self.row_shifts else self.shift
