"""A segment in many places, and what several features ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.line_arrays import Bools, Ints, head_of
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.features.members import Members

# What a feature is where its question makes no sense.
UNKNOWN = -99.0
MAX_TWIN_ROWS = 80
MIN_EQUAL_RATIO = 0.99


class CandidateTable:
    """Some candidates of a segment, a row each.

    Arrays without another shape are `[num_candidates]`. `pairs`, `runs` and `span` are members of
    candidates: pairs of a row and a line, runs that are kept, and all lines of [start, end).
    """

    def __init__(self, part: Part, chosen: slice) -> None:
        self.part = part
        self.original = part.original
        self.lines = part.original.arrays
        self.matcher = part.matcher
        self.candidates = candidates = part.candidates[chosen]
        self.num_rows = len(part.rows)
        self.num_lines = len(part.original)
        self.evidence = np.array(part.evidences[chosen], np.float64)
        self.starts, self.ends = part.starts[chosen], part.ends[chosen]
        self.shifts = part.shifts[chosen]
        self.pairs = self._members([len(one.pairs) for one in candidates])
        flat = np.array([pair for one in candidates for pair in one.pairs], np.intp).reshape(-1, 2)
        self.pair_rows, self.pair_lines = flat[:, 0], flat[:, 1]
        self.runs = self._members([len(one.kept) for one in candidates])
        kept = [(run.row, run.start, run.end) for one in candidates for run in one.kept]
        runs = np.array(kept, np.intp).reshape(-1, 3)
        self.run_rows, self.run_starts, self.run_ends = runs[:, 0], runs[:, 1], runs[:, 2]
        self.span = self._members((self.ends - self.starts).tolist())
        self._offsets = np.cumsum(self.ends - self.starts) - (self.ends - self.starts) - self.starts
        self.span_lines = np.arange(len(self.span.owners)) - self._offsets[self.span.owners]

    def _members(self, counts: Sequence[int]) -> Members:
        return Members(np.repeat(np.arange(len(counts)), counts), len(counts))

    @cached_property
    def is_kept(self) -> Bools:
        """`[num_span_lines]`: whether a line of the span stays."""
        marks = np.zeros(len(self.span_lines) + 1, np.intp)
        offsets = self._offsets[self.runs.owners]
        np.add.at(marks, self.run_starts + offsets, 1)
        np.add.at(marks, self.run_ends + offsets, -1)
        return np.cumsum(marks[:-1]) > 0

    @cached_property
    def is_removed(self) -> Bools:
        """`[num_span_lines]`: whether a line of the span is lost."""
        found = ~self.is_kept
        found[self.pair_lines + self._offsets[self.pairs.owners]] = False
        return found

    @cached_property
    def removed(self) -> tuple[Members, Ints]:
        """The lines that are lost."""
        return self.span.where(self.is_removed), self.span_lines[self.is_removed]

    @cached_property
    def is_row_paired(self) -> Bools:
        """`[num_candidates, num_rows + 1]`: whether a row has a line; the last one has none."""
        found = np.zeros((len(self.candidates), self.num_rows + 1), bool)
        found[self.pairs.owners, self.pair_rows] = True
        return found

    @cached_property
    def is_dropped(self) -> Bools:
        """`[num_candidates, num_rows]`: whether a row is not written."""
        found = np.zeros((len(self.candidates), self.num_rows), bool)
        for number, one in enumerate(self.candidates):
            if one.dropped:
                found[number, list(one.dropped)] = True
        return found

    @cached_property
    def is_added(self) -> Bools:
        """`[num_candidates, num_rows]`: whether a row is new there."""
        is_written = np.array([row.is_written for row in self.part.rows], bool)
        return is_written & ~self.is_row_paired[:, :-1] & ~self.is_dropped

    @cached_property
    def is_changed(self) -> Bools:
        """`[num_candidates, num_rows]`: whether a row is not in the original as it is."""
        if self.num_rows >= MAX_TWIN_ROWS:
            return self.is_added
        found = np.ones((len(self.candidates), self.num_rows), bool)
        is_equal = self.matcher.ratios[self.pair_rows, self.pair_lines] >= MIN_EQUAL_RATIO
        found[self.pairs.owners[is_equal], self.pair_rows[is_equal]] = False
        return found

    @cached_property
    def unequal_pairs(self) -> tuple[Members, Ints, Ints]:
        """Pairs that are not equal: their rows and their lines."""
        is_unequal = ~self.matcher.is_equal[self.pair_rows, self.pair_lines]
        rows, lines = self.pair_rows[is_unequal], self.pair_lines[is_unequal]
        return self.pairs.where(is_unequal), rows, lines

    @cached_property
    def row_heads(self) -> Ints:
        """`[num_rows]`: the number of each row's head among those of the lines; -1 for others."""
        numbers = self.lines.heads[0]
        return np.array([numbers.get(head_of(row.stripped), -1) for row in self.part.rows])

    @cached_property
    def has_pairs(self) -> Bools:
        """Whether any row has a line."""
        return self.pairs.counts() > 0

    @cached_property
    def first_pairs(self) -> tuple[Ints, Ints]:
        """Row and line of the first pair; behind the last ones without pairs."""
        rows = np.full(len(self.candidates), self.num_rows)
        lines = self.ends.copy()
        rows[self.pairs.owners[::-1]] = self.pair_rows[::-1]
        lines[self.pairs.owners[::-1]] = self.pair_lines[::-1]
        return rows, lines

    @cached_property
    def last_pairs(self) -> tuple[Ints, Ints]:
        """Row and line of the last pair; before the first ones without pairs."""
        rows = np.full(len(self.candidates), -1)
        lines = self.starts - 1
        rows[self.pairs.owners] = self.pair_rows
        lines[self.pairs.owners] = self.pair_lines
        return rows, lines

    @cached_property
    def between(self) -> tuple[Members, Ints, Ints]:
        """Before each pair and behind the last: lines that are lost there, and rows that come."""
        owners = np.concatenate([self.pairs.owners, np.arange(len(self.candidates))])
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        rows = np.concatenate([self.pair_rows, np.full(len(self.candidates), self.num_rows)])[order]
        lines = np.concatenate([self.pair_lines, self.ends])[order]
        rows_above, lines_above = np.roll(rows, 1), np.roll(lines, 1)
        is_first = np.concatenate([[True], owners[1:] != owners[:-1]])
        rows_above[is_first], lines_above[is_first] = -1, self.starts - 1
        num_kept = np.concatenate([[0], np.cumsum(self.is_kept)])
        offsets = self._offsets[owners]
        kept = num_kept[lines + offsets] - num_kept[lines_above + 1 + offsets]
        members = Members(owners, len(self.candidates))
        return members, lines - lines_above - 1 - kept, rows - rows_above - 1

    @cached_property
    def row_shifts(self) -> Ints:
        """`[num_candidates, num_rows]`: by how many columns each row is moved."""
        found = np.repeat(self.shifts[:, None], self.num_rows, axis=1)
        for number, one in enumerate(self.candidates):
            if one.row_shifts:
                found[number] = one.row_shifts
        return found

    def at(self, values: NDArray[Any], places: Ints, default: float) -> NDArray[Any]:
        """Values of `places`; `default` for those before the first or behind the last."""
        if not len(values):
            return np.full(len(places), default)
        is_inside = (places >= 0) & (places < len(values))
        found: NDArray[Any] = values[np.clip(places, 0, len(values) - 1)]
        return np.where(is_inside, found, default)
