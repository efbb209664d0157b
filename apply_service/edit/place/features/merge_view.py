"""A whole merge beside the original and other merges, and what several features ask about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.candidates.way import Way
from apply_service.edit.place.features.candidate_features import CANDIDATE_FEATURES
from apply_service.edit.place.features.telling_words import differing_words
from apply_service.edit.place.features.text_flaws import TextFlaws
from apply_service.edit.place.features.update_shape import UpdateShape
from apply_service.edit.read.segment import Snippet
from apply_service.edit.text.alignment import bounded_hunks

_BINDING = re.compile(
    r"(?:^|[\s(,{*&])(?:const |let |var |val |auto |final |mut )?([A-Za-z_]\w*)\s*"
    r"(?::[^=()]{1,30})?:?=(?![=>])"
)
_COLUMNS = {name: column for column, name in enumerate(CANDIDATE_FEATURES.names)}


_start_of, _end_of = attrgetter("start"), attrgetter("end")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to read the update, with what its merges have in common.

    `is_open` where no marker stands at its beginning, and at its end.
    """

    number: int
    snippet: Snippet
    words: frozenset[str]
    noted: frozenset[str]
    num_markers: int
    shape: UpdateShape
    is_open: tuple[bool, bool]


class MergeView:
    """One merge among `scores` of all, best first; `rows` are its candidates' features.

    `said` are the telling words of the instruction, `flaws_before` those of the original.
    """

    def __init__(
        self,
        original: OriginalFacts,
        reading: Reading,
        way: Way,
        lines: Sequence[str],
        *,
        rank: int,
        scores: Sequence[float],
        num_readings: int,
        rows: Sequence[NDArray[np.float32]],
        flaws_before: TextFlaws,
        said: frozenset[str] = frozenset(),
    ) -> None:
        self.original = original
        self.reading = reading
        self.way = way
        self.result = OriginalFacts(lines, original.language)
        self.rank = rank
        self.scores = scores
        self.num_readings = num_readings
        self.said = said
        self.flaws_before = flaws_before
        self.flaws = TextFlaws(self.result)
        self._rows = rows

    def of_candidates(self, name: str) -> list[float]:
        """A feature of all its segments."""
        column = _COLUMNS[name]
        return [float(row[column]) for row in self._rows] or [0.0]

    @cached_property
    def edges(self) -> tuple[Candidate, Candidate]:
        """The candidates that stand first and last in the file."""
        candidates = self.way.candidates
        return min(candidates, key=_start_of), max(candidates, key=_end_of)

    @cached_property
    def gone(self) -> Counter[str]:
        """Lines that the original has more often."""
        return self.original.counts - self.result.counts

    @cached_property
    def come(self) -> Counter[str]:
        """Lines that the result has more often."""
        return self.result.counts - self.original.counts

    @cached_property
    def changes(self) -> list[tuple[Sequence[str], Sequence[str]]]:
        """The filled lines that go and those that come, stretch by stretch."""
        old, new = self.original.stripped, self.result.stripped
        return [
            (old[hunk.old_start : hunk.old_end], new[hunk.new_start : hunk.new_end])
            for hunk in bounded_hunks(old, new)
        ]

    @cached_property
    def unsaid(self) -> list[tuple[Sequence[str], Sequence[str]]]:
        """The changes of which the instruction does not speak."""
        return [change for change in self.changes if not differing_words(*change) & self.said]

    @cached_property
    def lost_names(self) -> list[str]:
        """Names that nothing defines any more."""
        return [name for name in self.original.names if name not in self.result.names]

    @cached_property
    def lost_bindings(self) -> set[str]:
        """Names that only lost lines assign."""
        found = {name for line in self.gone for name in _BINDING.findall(line)}
        return {name for name in found if not self._is_bound(name)}

    def _is_bound(self, name: str) -> bool:
        if name in self.result.names:
            return True
        return any(
            name in words and name in _BINDING.findall(line)
            for words, line in zip(self.result.words, self.result.stripped, strict=True)
        )
