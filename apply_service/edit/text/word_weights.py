"""Weights of the words of a file: a rare word is strong evidence that two lines match."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from apply_service.edit.text.words import LETTERS_OR_NUMBER

_MAX_READ = 400


class WordWeights:
    """Weights of the words of an original, given by its stripped lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._words: dict[str, Counter[str]] = {}
        self._known: dict[str, float] = {}

    def words(self, line: str) -> Counter[str]:
        """The words of a line, each with its number of occurrences."""
        if line not in self._words:
            self._words[line] = Counter(LETTERS_OR_NUMBER.findall(line[:_MAX_READ]))
        return self._words[line]

    def of_lines(self, lines: Iterable[str]) -> Counter[str]:
        """The words of several lines, counted together."""
        together: Counter[str] = Counter()
        for line in lines:
            for word, count in self.words(line).items():
                together[word] = together.get(word, 0) + count
        return together

    def weight(self, words: Counter[str]) -> float:
        """The sum of the weights of words."""
        return sum(count * self.of(word) for word, count in words.items())

    def of(self, word: str) -> float:
        """The weight of one word: the logarithm of its rarity."""
        known = self._known.get(word)
        if known is None:
            known = math.log((len(self._lines) + 2) / (self.line_counts.get(word, 0) + 0.5))
            self._known[word] = known
        return known

    @cached_property
    def line_counts(self) -> Counter[str]:
        """Number of different lines that contain each word."""
        return Counter(word for line in self._lines for word in self.words(line))

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The lines that contain each word."""
        found: dict[str, list[int]] = {}
        for place, line in enumerate(self._lines):
            for word in self.words(line):
                found.setdefault(word, []).append(place)
        return found

    def kept_share(self, old: Counter[str], new: Counter[str]) -> float:
        """The weight of the common words as a share of the old ones'; 0 if these have none."""
        common = total = 0.0
        for word, count in old.items():
            weight = self.of(word)
            total += count * weight
            num_new = new.get(word, 0)
            common += (count if count < num_new else num_new) * weight
        return common / total if total else 0.0
