"""Pure insertions: the original's lines that a segment begins and ends with, and new ones between.

Nothing of the original goes. The lines around the new ones may be only a part of what could be
matched: a new block mostly resembles the one beside it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from apply_service.edit.text.line_index import LineIndex, num_equal_lines
from apply_service.edit.text.work_budget import spend

# Places of the first and of the last line that are looked at, those that match longest.
MAX_PLACES = 200
# Lines of context on one side alone, besides the longest.
MAX_ONE_SIDED = 8
MAX_INSERTIONS = 64


@dataclass(frozen=True, slots=True)
class Insertion:
    """Lines `[start, end)` stay: `num_before` of them stand before the new ones, the rest after."""

    start: int
    end: int
    num_before: int

    @property
    def num_after(self) -> int:
        """How many lines of the original follow the new ones."""
        return self.end - self.start - self.num_before


class InsertionFinder:
    """Finds the insertions of one segment; its first and last line have text.

    With `is_first` (`is_last`) the segment begins (ends) the file. `is_limited` says, after
    `find`, that a limit kept insertions from being found.
    """

    def __init__(
        self, texts: Sequence[str], index: LineIndex, *, is_first: bool, is_last: bool
    ) -> None:
        self._texts = texts
        self._stripped = [text.strip() for text in texts]
        self._index = index
        self._is_first, self._is_last = is_first, is_last
        self.is_limited = False

    def find(self) -> list[Insertion]:
        """Insertions with different spans: those between lines first, then the longest context."""
        heads = self._heads()
        tails = self._tails()
        found: dict[tuple[int, int], Insertion] = {}
        for one in (*self._two_sided(heads, tails), *self._one_sided(heads, tails)):
            if len(found) == MAX_INSERTIONS:
                self.is_limited = True
                break
            found.setdefault((one.start, one.end), one)
        return list(found.values())

    def _heads(self) -> list[tuple[int, int]]:
        """Where the original goes on as the segment begins, and for how many lines."""
        places = [0] if self._is_first else self._index.places(self._stripped[0])
        heads = [(place, self._num_equal(0, place, 1)) for place in self._cut(places)]
        return [(place, size) for place, size in heads if size or self._is_first]

    def _tails(self) -> list[tuple[int, int]]:
        """Where the original ends what the segment ends with, and for how many lines."""
        total = len(self._index)
        ends = self._index.places(self._stripped[-1])
        places = [total - 1] if self._is_last else self._cut(ends)
        last = len(self._texts) - 1
        tails = [(place + 1, self._num_equal(last, place, -1)) for place in places]
        return [(end, size) for end, size in tails if size or self._is_last]

    def _cut(self, places: Sequence[int]) -> Sequence[int]:
        self.is_limited |= len(places) > MAX_PLACES
        return places[:MAX_PLACES]

    def _num_equal(self, new: int, old: int, step: int) -> int:
        """How many lines are equal from here on, in one direction."""
        size = num_equal_lines(self._texts, new, self._index.lines, old, step)
        new, old = new + size * step, old + size * step
        texts, lines, stripped = self._stripped, self._index.lines, self._index.stripped
        while 0 <= new < len(texts) and 0 <= old < len(lines) and texts[new] == stripped[old]:
            if texts[new] and self._texts[new] != lines[old]:
                break
            new, old, size = new + step, old + step, size + 1
        spend(1 + size)
        return size

    def _two_sided(
        self, heads: Sequence[tuple[int, int]], tails: Sequence[tuple[int, int]]
    ) -> Iterator[Insertion]:
        ends = [end for end, _ in tails]
        longest = max((size for _, size in tails), default=0)
        for start, num_head in heads:
            low = bisect_left(ends, start + 1)
            high = bisect_right(ends, start + num_head + longest)
            for end, num_tail in tails[low:high]:
                num_before = max(min(num_head, end - start - 1), end - start - num_tail)
                if end - start <= num_head + num_tail and self._has_new(
                    num_before, end - start - num_before
                ):
                    yield Insertion(start, end, num_before)

    def _one_sided(
        self, heads: Sequence[tuple[int, int]], tails: Sequence[tuple[int, int]]
    ) -> Iterator[Insertion]:
        """Where only the lines before the new ones, or only those after them, are known."""
        before = () if self._is_last else self._behind(heads)
        after = () if self._is_first else self._in_front(tails)
        for pair in zip_longest(before, after):
            yield from filter(None, pair)

    def _behind(self, heads: Sequence[tuple[int, int]]) -> Iterator[Insertion]:
        for start, num_head in sorted(heads, key=lambda head: -head[1]):
            for size in self._sizes(num_head):
                if self._stripped[size - 1] and self._has_new(size, 0):
                    yield Insertion(start, start + size, size)

    def _in_front(self, tails: Sequence[tuple[int, int]]) -> Iterator[Insertion]:
        for end, num_tail in sorted(tails, key=lambda tail: -tail[1]):
            for size in self._sizes(num_tail):
                if self._stripped[-size] and self._has_new(0, size):
                    yield Insertion(end - size, end, 0)

    def _sizes(self, longest: int) -> list[int]:
        self.is_limited |= longest > MAX_ONE_SIDED + 1
        return sorted({*range(1, min(longest, MAX_ONE_SIDED) + 1), *([longest] if longest else [])})

    def _has_new(self, num_before: int, num_after: int) -> bool:
        return any(self._stripped[num_before : len(self._stripped) - num_after])
