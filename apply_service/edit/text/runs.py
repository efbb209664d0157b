"""Runs: stretches of consecutive segment lines that also stand in the original."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from apply_service.edit.text.line_index import LineIndex, indent_of, num_equal_lines

# A line that stands more often than this begins no run; it still lengthens runs of its neighbours.
MAX_PLACES = 64
MAX_RUNS = 200
# A line at the segment's border that stands often is looked for near the strongest runs.
MAX_STRONG = 3
NEAR_LINES = 12
# Lines compared while runs of one segment are lengthened; beyond it the rarest runs are kept.
MAX_COMPARED_LINES = 200_000
# What a match is worth when the indentation differs.
INDENTED_SHARE = 0.8
TRIVIAL_WEIGHT = 0.5
# What the further lines of a run count: they are no independent evidence.
REPEATED_SHARE = 0.5


class Run(msgspec.Struct, frozen=True, gc=False):
    """Segment lines `[new, new_end)` are the original lines `[old, old_end)`.

    They are equal up to white space around them, and the first and the last one have text;
    `is_exact` says that the white space is equal as well. A run with `is_definition` is a whole
    definition of the segment that takes the place of the one with its name, whatever their lines;
    `is_closed` is false if the segment's one may go on in the original. A run with `is_alike` is
    one line that is a variant of the original's.
    """

    new: int
    new_end: int
    old: int
    old_end: int
    weight: float
    is_exact: bool
    is_definition: bool = False
    is_closed: bool = True
    is_alike: bool = False

    @property
    def is_border(self) -> bool:
        """The start or the end of the file: no line at all."""
        return self.new == self.new_end and self.old == self.old_end


def find_runs(texts: Sequence[str], index: LineIndex) -> list[Run]:
    """All maximal runs of the segment `texts`, by place in the original; at most `MAX_RUNS`."""
    stripped = [text.strip() for text in texts]
    starts = [place for place, text in enumerate(stripped) if index.places(text)]
    starts.sort(key=lambda place: len(index.places(stripped[place])))
    finder = _Finder(texts, stripped, index)
    for place in starts:
        places = index.places(stripped[place])
        is_common = len(places) > MAX_PLACES and bool(finder.runs)
        if is_common and place not in (0, len(texts) - 1):
            continue
        for old in finder.near(places) if is_common else places[:MAX_PLACES]:
            finder.add(place, old)
        if finder.is_full:
            break
    return sorted(finder.runs, key=lambda run: (run.old, run.new))


class _Finder:
    """Collects runs; a pair of lines that lies in a run already found is skipped."""

    def __init__(self, texts: Sequence[str], stripped: Sequence[str], index: LineIndex) -> None:
        self.runs: list[Run] = []
        self._texts = texts
        self._stripped = stripped
        self._index = index
        self._covered: dict[int, list[tuple[int, int]]] = {}
        self._num_compared = 0

    @property
    def is_full(self) -> bool:
        return len(self.runs) >= MAX_RUNS or self._num_compared > MAX_COMPARED_LINES

    def near(self, places: Sequence[int]) -> list[int]:
        """The places, out of many, that lie close to the weightiest runs."""
        strong = sorted(self.runs, key=lambda run: -run.weight)[:MAX_STRONG]
        reach = len(self._stripped) + NEAR_LINES
        found: list[int] = []
        for run in strong:
            first = bisect_left(places, run.old - reach)
            last = bisect_left(places, run.old_end + reach)
            found.extend(places[max(first, last - MAX_PLACES) : last])
        return list(dict.fromkeys(found))

    def add(self, new: int, old: int) -> None:
        """The run through segment line `new` and original line `old`, which are equal."""
        spans = self._covered.setdefault(old - new, [])
        if self.is_full or any(start <= new < end for start, end in spans):
            return
        first, last = self._reach(new, old, -1), self._reach(new, old, 1)
        spans.append((first, last + 1))
        length = last + 1 - first
        texts = self._stripped[first : last + 1]
        start = old - new + first
        old_lines = self._index.lines[start : start + length]
        is_exact = all(
            a == b or not a.strip()
            for a, b in zip(self._texts[first : last + 1], old_lines, strict=True)
        )
        weights = [self._index.weight(text) for text in texts]
        weight = max(weights) * (1 - REPEATED_SHARE) + sum(weights) * REPEATED_SHARE
        if not is_exact:
            weight = weight * INDENTED_SHARE - (0.0 if max(weights) > TRIVIAL_WEIGHT else 1.0)
        self.runs.append(Run(first, last + 1, start, start + length, weight, is_exact))

    def _reach(self, new: int, old: int, step: int) -> int:
        """The last filled line of the run in one direction, as a place in the segment.

        The indentation may differ from the original's, but by the same amount everywhere.
        """
        stripped, old_stripped = self._stripped, self._index.stripped
        shift = self._shift(new, old)
        offset = old - new
        num_equal = num_equal_lines(self._texts, new, self._index.lines, old, step)
        self._num_compared += num_equal
        reached = new + max(num_equal - 1, 0) * step
        while not stripped[reached]:
            reached -= step
        place = new + max(num_equal, 1) * step
        while 0 <= place < len(stripped) and 0 <= place + offset < len(old_stripped):
            self._num_compared += 1
            if stripped[place] != old_stripped[place + offset]:
                break
            if stripped[place]:
                if self._shift(place, place + offset) != shift:
                    break
                reached = place
            place += step
        return reached

    def _shift(self, new: int, old: int) -> int:
        return len(indent_of(self._index.lines[old])) - len(indent_of(self._texts[new]))
