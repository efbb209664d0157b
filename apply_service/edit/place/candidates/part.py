"""A part of an update: a segment, a removal or the end of a block, with its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.filled_lines import words_of
from apply_service.edit.place.candidates.line_arrays import Ints
from apply_service.edit.place.candidates.original_facts import OriginalFacts, balance
from apply_service.edit.place.candidates.row_matcher import RowMatcher
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.text.definition_names import definition_name

PartKind = Literal["segment", "removal", "block_end"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is written in one place, and where that may be.

    `names` are defined by the rows, `new_rows` are of definitions that seem to be added.
    `indent_before` and `indent_after` are the columns of the markers around it, None where there is
    none. `number` is the segment's, -1 for others; `num_blank_behind` blank lines were sent below
    its last row. A removal stands in line `sent_line` of the update, from 1.
    """

    kind: PartKind
    original: OriginalFacts
    rows: tuple[Row, ...]
    matcher: RowMatcher
    candidates: Sequence[Candidate]
    names: frozenset[str] = frozenset()
    new_rows: frozenset[int] = frozenset()
    has_gap_before: bool = True
    has_gap_after: bool = True
    indent_before: int | None = None
    indent_after: int | None = None
    num_blank_behind: int = 0
    number: int = -1
    sent_line: int = 0

    @cached_property
    def starts(self) -> Ints:
        """`[num_candidates]`: the first lines that give way."""
        return np.array([one.start for one in self.candidates], np.intp)

    @cached_property
    def ends(self) -> Ints:
        """`[num_candidates]`: the lines behind those that give way."""
        return np.array([one.end for one in self.candidates], np.intp)

    @cached_property
    def shifts(self) -> Ints:
        """`[num_candidates]`: by how many columns the rows are moved."""
        return np.array([one.shift for one in self.candidates], np.intp)

    @cached_property
    def balance(self) -> int:
        """Brackets that the written rows open and leave open."""
        return sum(balance(row.stripped) for row in self.rows if row.is_written)

    @cached_property
    def telling(self) -> float:
        """How much all rows could tell together."""
        return float(self.matcher.telling.sum())

    @cached_property
    def row_names(self) -> dict[int, str]:
        """The name that a row defines, by row."""
        found = {number: definition_name(row.text) for number, row in enumerate(self.rows)}
        return {number: name for number, name in found.items() if name is not None}

    @cached_property
    def row_counts(self) -> Ints:
        """`[num_rows]`: how often the original has each row."""
        return np.array([self.original.counts[row.stripped] for row in self.rows], np.intp)

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The different words of each row."""
        return [words_of(row.stripped) for row in self.rows]

    @cached_property
    def evidences(self) -> list[float]:
        """How much the paired rows of each candidate tell together."""
        return [self.matcher.evidence_of(one.pairs) for one in self.candidates]

    @cached_property
    def best_evidence(self) -> float:
        """The evidence of the candidate that has most."""
        return max(self.evidences, default=0.0)

    @cached_property
    def span_evidences(self) -> list[float]:
        """The most evidence of each span, rising."""
        spans: dict[tuple[int, int], float] = {}
        for one, evidence in zip(self.candidates, self.evidences, strict=True):
            spans[one.start, one.end] = max(spans.get((one.start, one.end), 0.0), evidence)
        return sorted(spans.values())

    @property
    def first_indent(self) -> int:
        """Columns before the first row; 0 without rows."""
        return self.rows[0].indent if self.rows else 0

    @property
    def last_indent(self) -> int:
        """Columns before the last row; 0 without rows."""
        return self.rows[-1].indent if self.rows else 0
