"""A segment in one place, and what several features ask about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.part import Part

# What a feature is where its question makes no sense.
UNKNOWN = -99.0
MAX_TWIN_ROWS = 80


class CandidateView:
    """A candidate and what several features ask about it."""

    def __init__(self, part: Part, candidate: Candidate, evidence: float) -> None:
        self.part = part
        self.original = part.original
        self.rows = part.rows
        self.matcher = part.matcher
        self.candidate = candidate
        self.evidence = evidence
        self.pairs = candidate.pairs
        self.kept = {line for run in candidate.kept for line in range(run.start, run.end)}
        paired_lines = {line for _, line in self.pairs}
        span = range(candidate.start, candidate.end)
        self.removed = [line for line in span if line not in paired_lines and line not in self.kept]
        paired_rows = {row for row, _ in self.pairs}
        self.added = [
            row
            for row, one in enumerate(part.rows)
            if one.is_written and row not in paired_rows and row not in candidate.dropped
        ]
        self.first_pair = self.pairs[0] if self.pairs else (len(self.rows), candidate.end)
        self.last_pair = self.pairs[-1] if self.pairs else (-1, candidate.start - 1)

    @cached_property
    def unequal_pairs(self) -> list[float]:
        """The likeness of pairs that are not equal."""
        return [
            float(self.matcher.ratios[pair])
            for pair in self.pairs
            if not self.matcher.is_equal[pair]
        ]

    @cached_property
    def changed_rows(self) -> list[int]:
        """Rows that are not in the original as they are."""
        equal = {row for row, line in self.pairs if self.matcher.ratios[row, line] >= 0.99}
        rows = [row for row in range(len(self.rows)) if row not in equal]
        return rows if len(self.rows) < MAX_TWIN_ROWS else self.added

    @cached_property
    def lost_runs(self) -> list[int]:
        """Lengths of runs that are lost between two rows (or borders) sent next to each other."""
        return [lost for lost, added in self._between if lost and not added]

    @cached_property
    def added_runs(self) -> list[int]:
        """Lengths of runs of rows that come between two lines next to each other."""
        return [added for lost, added in self._between if added and not lost]

    @cached_property
    def _between(self) -> list[tuple[int, int]]:
        found = []
        row_above, line_above = -1, self.candidate.start - 1
        for row, line in [*self.pairs, (len(self.rows), self.candidate.end)]:
            lost = sum(one not in self.kept for one in range(line_above + 1, line))
            found.append((lost, row - row_above - 1))
            row_above, line_above = row, line
        return found

    @cached_property
    def removed_likeness(self) -> list[float]:
        """For each lost line how alike the row is that is most alike."""
        return self.matcher.best_ratios[self.removed].tolist() if self.removed else []

    def indent_at(self, line: int, default: int = 0) -> int:
        """The indentation of a line of the original."""
        return self.original.indents[line] if 0 <= line < len(self.original) else default

    def mean_likeness(self, rows: Sequence[int], lines: range) -> float:
        """How alike the lines are to the rows most alike, in the mean; 1 without lines."""
        if not len(lines) or not rows:
            return 1.0
        block = self.matcher.ratios[rows[0] : rows[-1] + 1, lines.start : lines.stop]
        return float(block.max(axis=0).mean())
