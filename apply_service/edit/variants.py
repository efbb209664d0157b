"""Changed lines sent without any context: they take the place of the lines they are variants of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from apply_service.edit.line_index import LineIndex, indent_of
from apply_service.edit.word_weights import WordWeights

# Longer segments are not compared as a whole.
MAX_VARIANT_LINES = 12
# How many lines more or fewer than the new ones the old ones may be.
MAX_DIFFERENCE = 3
# A word that stands in more lines leads to no variant, and so many lines are looked at.
MAX_LINES_OF_WORD = 64
MAX_STARTS = 400
MAX_VARIANTS = 8
# The share of the old lines' words that must stay, and of the words of both.
MIN_KEPT = 0.6
MIN_COMMON = 0.45
# One word in common makes no variant.
MIN_WORDS = 2
# With this share of the old words they are hardly anything else.
SURE_KEPT = 0.85


@dataclass(frozen=True, slots=True)
class Variant:
    """Lines `[start, end)` of the original, of whose words the new ones keep the share `kept`.

    `score` orders variants of the same lines; it is at most 1.
    """

    start: int
    end: int
    kept: float
    score: float


class VariantFinder:
    """Finds what new lines are variants of in one original."""

    def __init__(self, index: LineIndex, weights: WordWeights) -> None:
        self._index = index
        self._weights = weights

    def find(self, core: Sequence[str], low: int, high: int) -> list[Variant]:
        """The old lines in `[low, high)` that `core` may stand for, most alike first.

        Its first and last line have text. Of spans that overlap only the best is kept.
        """
        filled = [line.strip() for line in core if line.strip()]
        if len(filled) > MAX_VARIANT_LINES:
            return []
        new = self._weights.of_lines(filled)
        found = [
            variant
            for start in self._starts(new, low, high)
            for variant in self._from(start, high, core, new)
        ]
        found.sort(key=lambda one: (-one.score, one.start, one.end))
        kept: list[Variant] = []
        for one in found:
            if all(one.end <= other.start or other.end <= one.start for other in kept):
                kept.append(one)
            if len(kept) == MAX_VARIANTS:
                break
        return kept

    def _starts(self, new: Counter[str], low: int, high: int) -> list[int]:
        """Lines that share a rare word with the new ones."""
        starts: set[int] = set()
        known = [word for word in new if word in self._places]
        for word in sorted(known, key=lambda word: len(self._places[word])):
            places = self._places[word]
            if len(places) > MAX_LINES_OF_WORD or len(starts) > MAX_STARTS:
                break
            starts.update(place for place in places if low <= place < high)
        return sorted(starts)[:MAX_STARTS]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The lines that have a word, rising."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(self._index.stripped):
            for word in self._weights.words(text):
                places.setdefault(word, []).append(place)
        return places

    def _from(
        self, start: int, high: int, core: Sequence[str], new: Counter[str]
    ) -> Iterator[Variant]:
        lines = self._index.lines
        if indent_of(lines[start]) != indent_of(core[0]):
            return
        num_new = sum(1 for line in core if line.strip())
        old: Counter[str] = Counter()
        num_old = 0
        for place in range(start, min(high, start + len(core) + MAX_DIFFERENCE)):
            text = self._index.stripped[place]
            if not text:
                continue
            old = old + self._weights.words(text)
            num_old += 1
            if num_old > num_new + MAX_DIFFERENCE:
                return
            if indent_of(lines[place]) != indent_of(core[-1]) and num_old != num_new:
                continue
            if len(old & new) < MIN_WORDS:
                continue
            kept, common = self._weights.shares(old, new)
            if kept >= MIN_KEPT and common >= MIN_COMMON:
                yield Variant(start, place + 1, kept, (kept + common) / 2)
