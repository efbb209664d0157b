"""The old lines that the outermost lines of a segment are variants of.

A segment may show nothing but changed lines. Then no line of it stands in the original, and only
what its first and its last line are like tells where it goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from apply_service.edit.place.opinion.segment_borders import ALIKE_SLOPE, EVEN_SIMILARITY
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.runs import Run
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights

# Lines that are looked at for each word, the first.
MAX_LINES_OF_WORD = 64
# Lines with the weightiest words in common that are compared, and how many of these are taken.
MAX_COMPARED = 16
MAX_TAKEN = 3
MIN_LIKENESS = 0.7


class AlikeLines:
    """Finds the old lines that new ones may be variants of."""

    def __init__(self, index: LineIndex, similarity: Similarity, weights: WordWeights) -> None:
        self._index = index
        self._similarity = similarity
        self._weights = weights
        self._known: dict[str, list[tuple[int, float]]] = {}

    def runs(self, texts: Sequence[str], *, but: Collection[int] = ()) -> Iterator[Run]:
        """A run for the first and for the last of `texts` with each line that it is a variant of.

        Nothing is found for rows of `but`, for lines that the original has, and for those that say
        little.
        """
        for row in dict.fromkeys((0, len(texts) - 1)):
            text = texts[row].strip()
            if row in but or self._index.fullness(text) < 1.0 or self._index.places(text):
                continue
            for place, ratio in self._variants(text):
                is_exact = indent_of(texts[row]) == indent_of(self._index.lines[place])
                weight = ALIKE_SLOPE * (ratio - EVEN_SIMILARITY)
                yield Run(row, row + 1, place, place + 1, weight, is_exact, is_alike=True)

    def _variants(self, text: str) -> list[tuple[int, float]]:
        """The lines that are most like `text`, with how much they are."""
        if text not in self._known:
            shared: defaultdict[int, float] = defaultdict(float)
            for word in self._weights.words(text):
                for place in self._weights.places.get(word, ())[:MAX_LINES_OF_WORD]:
                    shared[place] += self._weights.of(word)
            closest = sorted(shared, key=lambda place: (-shared[place], place))[:MAX_COMPARED]
            stripped = self._index.stripped
            found = [(place, self._similarity.ratio(stripped[place], text)) for place in closest]
            found.sort(key=lambda pair: -pair[1])
            self._known[text] = [pair for pair in found if pair[1] >= MIN_LIKENESS][:MAX_TAKEN]
        return self._known[text]
