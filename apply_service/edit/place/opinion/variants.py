"""Places changed lines sent without context: they replace the lines they are variants of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.word_weights import WordWeights

# Longer segments are not compared as a whole.
MAX_VARIANT_LINES = 12
# How many lines more or fewer than the new ones the old ones may be.
MAX_DIFFERENCE = 3
# A word that stands in more lines leads to no variant, and so many lines are looked at.
MAX_LINES_OF_WORD = 64
MAX_STARTS = 400
# After so many lines only a few are looked at for each segment.
MAX_STARTS_IN_ALL = 4_000
MAX_STARTS_LATE = 16
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
    """Lines `[start, end)` of the original; `kept` is the share of their words in the new lines.

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
        self._num_starts = 0

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
        """Lines that share a word with the new ones, those with the rarest first."""
        limit = MAX_STARTS if self._num_starts < MAX_STARTS_IN_ALL else MAX_STARTS_LATE
        starts: dict[int, None] = {}
        known = [self._weights.places[word] for word in new if word in self._weights.places]
        for places in sorted(known, key=len):
            if len(places) > MAX_LINES_OF_WORD or len(starts) > limit:
                break
            starts.update(dict.fromkeys(place for place in places if low <= place < high))
        found = list(starts)[:limit]
        self._num_starts += len(found)
        return found

    def _from(
        self, start: int, high: int, core: Sequence[str], new: Counter[str]
    ) -> Iterator[Variant]:
        lines = self._index.lines
        if indent_of(lines[start]) != indent_of(core[0]):
            return
        num_new = sum(1 for line in core if line.strip())
        num_old = 0
        overlap = _Overlap(new, self._weights)
        for place in range(start, min(high, start + len(core) + MAX_DIFFERENCE)):
            text = self._index.stripped[place]
            if not text:
                continue
            overlap.add(self._weights.words(text))
            num_old += 1
            if num_old > num_new + MAX_DIFFERENCE:
                return
            if indent_of(lines[place]) != indent_of(core[-1]) and num_old != num_new:
                continue
            if len(overlap.words) < MIN_WORDS:
                continue
            if overlap.kept >= MIN_KEPT and overlap.common >= MIN_COMMON:
                score = (overlap.kept + overlap.common) / 2
                yield Variant(start, place + 1, overlap.kept, score)


class _Overlap:
    """The words that old lines and new ones have in common, counted line by line."""

    def __init__(self, new: Counter[str], weights: WordWeights) -> None:
        self.words: set[str] = set()
        self._weights = weights
        self._left = dict(new)
        self._new_weight = weights.weight(new)
        self._old_weight = self._common_weight = 0.0

    def add(self, words: Counter[str]) -> None:
        """The old lines have another line of these words."""
        for word, count in words.items():
            weight = self._weights.of(word)
            self._old_weight += count * weight
            num_common = min(count, self._left.get(word, 0))
            if num_common:
                self.words.add(word)
                self._left[word] -= num_common
                self._common_weight += num_common * weight

    @property
    def kept(self) -> float:
        """The weight of the common words against the old ones."""
        return self._common_weight / self._old_weight if self._old_weight else 0.0

    @property
    def common(self) -> float:
        """The weight of the common words against the words of both."""
        total = self._old_weight + self._new_weight
        return 2 * self._common_weight / total if total else 0.0
