"""Cheap features of all candidates of a segment at once: which of them deserve a closer look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.candidate import Candidate, Origin
from apply_service.edit.place.candidates.original_facts import OriginalFacts, balance
from apply_service.edit.place.candidates.row_matcher import RowMatcher
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.place.features.feature import Rows

Array = NDArray[np.float32]
Ints = NDArray[np.int64]
Column = NDArray[np.generic]
ORIGINS: tuple[Origin, ...] = ("alignment", "run", "block", "frame", "insertion")
# Beyond the borders of the file lines are less deep than any.
OUTSIDE = -8


@dataclass(frozen=True, slots=True)
class FirstFeature:
    """A number for each candidate; the first line of its docstring says what it tells."""

    name: str
    why: str
    compute: Callable[[FirstLook], Column]


FIRST_FEATURES: list[FirstFeature] = []


def first_rows(look: FirstLook) -> Rows:
    """`[num_candidates, num_features]`: the values of all first features."""
    columns = [feature.compute(look) for feature in FIRST_FEATURES]
    return np.stack(columns, axis=1).astype(np.float32)


class FirstLook:
    """All candidates of a segment as arrays, `[num_candidates]` each."""

    def __init__(
        self,
        original: OriginalFacts,
        rows: Sequence[Row],
        matcher: RowMatcher,
        candidates: Sequence[Candidate],
    ) -> None:
        self.original = original
        self.rows = rows
        self.matcher = matcher
        self.candidates = candidates
        self.start = _ints(one.start for one in candidates)
        self.end = _ints(one.end for one in candidates)
        self.shift = _ints(one.shift for one in candidates)
        self.num_pairs = _ints(len(one.pairs) for one in candidates)
        self.num_runs = _ints(len(one.kept) for one in candidates)
        self.num_kept = _ints(sum(run.end - run.start for run in one.kept) for one in candidates)
        self.num_restored = _ints(
            sum(run.row in one.dropped for run in one.kept) for one in candidates
        )
        self.num_dropped = _ints(len(one.dropped) for one in candidates)
        first = [one.pairs[0] if one.pairs else (len(rows), one.end) for one in candidates]
        last = [one.pairs[-1] if one.pairs else (-1, one.start - 1) for one in candidates]
        self.first_row, self.first_line = (_ints(column) for column in zip(*first, strict=True))
        self.last_row, self.last_line = (_ints(column) for column in zip(*last, strict=True))
        self._indents = _ints((OUTSIDE, *original.indents, OUTSIDE))

    @cached_property
    def evidence(self) -> Array:
        """How much the pairs of each span tell; candidates of a span share their pairs."""
        known: dict[int, float] = {}
        for one in self.candidates:
            if id(one.pairs) not in known:
                known[id(one.pairs)] = self.matcher.evidence_of(one.pairs)
        return np.array([known[id(one.pairs)] for one in self.candidates], np.float32)

    @cached_property
    def removed_weight(self) -> Array:
        """How much the lines say that go."""
        sums = np.concatenate([[0.0], np.cumsum(self.matcher.line_weights)])
        kept = [sum(sums[run.end] - sums[run.start] for run in one.kept) for one in self.candidates]
        lost = sums[self.end] - sums[self.start] - self.evidence - np.array(kept)
        return np.maximum(lost, 0.0).astype(np.float32)

    def indent_at(self, lines: Ints) -> Ints:
        """The indentation of lines of the original; `OUTSIDE` beyond its borders."""
        found: Ints = self._indents[lines + 1]
        return found


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)


def _add(compute: Callable[[FirstLook], Column]) -> None:
    why = (compute.__doc__ or "").partition("\n")[0]
    FIRST_FEATURES.append(FirstFeature(compute.__name__, why, compute))


@_add
def evidence(look: FirstLook) -> Column:
    """How much the paired rows tell."""
    return look.evidence


@_add
def evidence_share(look: FirstLook) -> Column:
    """Of what all rows could tell."""
    return np.divide(look.evidence, max(float(look.matcher.telling.sum()), 0.1))


@_add
def evidence_gap(look: FirstLook) -> Column:
    """Another candidate tells more."""
    return np.subtract(look.evidence.max(), look.evidence)


@_add
def evidence_rank(look: FirstLook) -> Column:
    """So many spans tell more."""
    return np.searchsorted(np.unique(-look.evidence), -look.evidence)


@_add
def removed_weight(look: FirstLook) -> Column:
    """How much the lines say that go."""
    return look.removed_weight


@_add
def num_removed(look: FirstLook) -> Column:
    """Lines that go."""
    kept = look.num_kept - look.num_restored
    return look.end - look.start - look.num_pairs - kept


@_add
def num_added(look: FirstLook) -> Column:
    """Rows that come."""
    num_written = sum(row.is_written for row in look.rows)
    return num_written - look.num_pairs - look.num_dropped + look.num_restored


@_add
def balance_change(look: FirstLook) -> Column:
    """Brackets that are opened or closed more than before."""
    depths = _ints(look.original.depths)
    opened = sum(balance(row.stripped) for row in look.rows if row.is_written)
    kept = [
        sum(int(depths[run.end] - depths[run.start]) for run in one.kept) for one in look.candidates
    ]
    return np.abs(opened - (depths[look.end] - depths[look.start]) + np.array(kept))


@_add
def has_shift(look: FirstLook) -> Column:
    """All rows are moved sideways."""
    return look.shift != 0


@_add
def has_row_shifts(look: FirstLook) -> Column:
    """Rows are moved sideways, each by its own columns."""
    return np.array([bool(one.row_shifts) for one in look.candidates])


@_add
def num_left_out(look: FirstLook) -> Column:
    """Runs that stay though no marker stands for them."""
    return look.num_runs - look.num_restored


@_add
def num_left_out_lines(look: FirstLook) -> Column:
    """Lines that stay though no marker stands for them."""
    return look.num_kept - look.num_restored


@_add
def num_dropped(look: FirstLook) -> Column:
    """Rows that are not written."""
    return look.num_dropped


@_add
def num_restored(look: FirstLook) -> Column:
    """Rows that were sent with a mistake."""
    return look.num_restored


@_add
def rows_above(look: FirstLook) -> Column:
    """Rows before the first paired one."""
    return look.first_row


@_add
def rows_below(look: FirstLook) -> Column:
    """Rows behind the last paired one."""
    return len(look.rows) - 1 - look.last_row


@_add
def first_likeness(look: FirstLook) -> Column:
    """How alike the first pair is."""
    return _likeness(look, look.first_row, look.first_line)


@_add
def last_likeness(look: FirstLook) -> Column:
    """How alike the last pair is."""
    return _likeness(look, look.last_row, look.last_line)


def _likeness(look: FirstLook, rows: Ints, lines: Ints) -> Column:
    has_pairs = look.num_pairs > 0
    found = np.zeros(len(look.candidates), np.float32)
    found[has_pairs] = look.matcher.ratios[rows[has_pairs], lines[has_pairs]]
    return found


@_add
def lines_above(look: FirstLook) -> Column:
    """Lines that go before the first paired one."""
    return look.first_line - look.start


@_add
def lines_below(look: FirstLook) -> Column:
    """Lines that go behind the last paired one."""
    return look.end - 1 - look.last_line


@_add
def is_insertion(look: FirstLook) -> Column:
    """Nothing gives way."""
    return look.start == look.end


@_add
def depth_to_start(look: FirstLook) -> Column:
    """How much deeper the line at the start is than the first row."""
    return look.indent_at(look.start) - look.rows[0].indent - look.shift


@_add
def depth_to_above(look: FirstLook) -> Column:
    """How much deeper the line above is than the first row."""
    return look.indent_at(look.start - 1) - look.rows[0].indent - look.shift


@_add
def depth_to_below(look: FirstLook) -> Column:
    """How much deeper the line below is than the last row."""
    return look.indent_at(look.end) - look.rows[-1].indent - look.shift


@_add
def depth_to_last(look: FirstLook) -> Column:
    """How much deeper the last line is than the last row."""
    return look.indent_at(look.end - 1) - look.rows[-1].indent - look.shift


@_add
def begins_file(look: FirstLook) -> Column:
    """It begins the file."""
    return look.start == 0


@_add
def ends_file(look: FirstLook) -> Column:
    """It ends the file."""
    return look.end == len(look.original)


@_add
def ends_block(look: FirstLook) -> Column:
    """A block ends where it begins."""
    return look.indent_at(look.start) < look.indent_at(look.start - 1)


@_add
def num_rows(look: FirstLook) -> Column:
    """Rows of the segment."""
    return np.full(len(look.candidates), len(look.rows))


@_add
def num_candidates(look: FirstLook) -> Column:
    """Candidates that compete."""
    return np.full(len(look.candidates), len(look.candidates))


def _from(origin: Origin) -> None:
    def compute(look: FirstLook) -> Column:
        return np.array([origin in one.origins for one in look.candidates])

    compute.__name__ = f"from_{origin}"
    compute.__doc__ = f"Found by {origin}."
    _add(compute)


for _origin in ORIGINS:
    _from(_origin)
