"""Measures the similarity of two texts: letter by letter, as lines, and as runs of lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from apply_service.edit.text.alignment import Block, matching_blocks
from apply_service.edit.text.definition_names import definition_name
from apply_service.edit.text.words import WORD
from apply_service.edit.text.work_budget import spend

MIN_SIMILARITY = 0.6
# Only the likeness above this speaks for a pair of lines.
EVEN_PAIR = 0.5
MAX_COMPARED_CHARS = 160
# Lines that give the same name a value, or of which one goes on where the other ends.
SAME_KEY_RATIO = 0.95
SAME_NAME_RATIO = 0.95
MIN_SHARED_WORDS = 2
# A name that is given a value more often than once in so many lines says nothing.
LINES_PER_KEY = 150
MIN_PREFIX_CHARS = 12
_NAMED_VALUE = re.compile(r"(?P<key>[^\W\d][\w\s.$\"'-]{0,60}?)\s*(?::(?!:)|=(?![=>]))\s*\S")
_KEYWORDS = frozenset(
    {
        "import",
        "from",
        "export",
        "const",
        "let",
        "var",
        "def",
        "class",
        "function",
        "func",
        "fn",
        "return",
        "type",
        "interface",
        "struct",
        "use",
        "pub",
        "public",
        "private",
        "protected",
        "static",
        "async",
        "await",
        "self",
        "this",
        "if",
        "else",
        "for",
        "in",
        "and",
        "or",
        "not",
        "new",
        "as",
        "is",
        "None",
        "null",
        "true",
        "false",
        "True",
        "False",
    }
)
# Pairs of letters that count as one comparison: 64 of them take one operation.
LETTER_PAIRS = 100_000
# Texts with fewer pairs of letters are compared as they are.
_SMALL = 1_000_000


class Similarity:
    """Compares stripped lines, and remembers what it has compared.

    `lines` is the original, stripped; `renames` holds the old name for each new one.
    """

    def __init__(
        self, lines: Sequence[str] = (), *, renames: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._lines = lines
        self._renames = renames
        self._known: dict[str, dict[str, float]] = {}
        self._former: dict[str, str] = {}
        self._traits: dict[str, _Traits] = {}
        self._letters = _Occurrences(list)
        self._words = _Occurrences(_telling_words)

    def ratio(self, left: str, right: str) -> float:
        """Similarity by characters and words, from 0 to 1; 0 if it cannot exceed `EVEN_PAIR`."""
        return self._ratios(left, (right,))[0]

    def _ratios(self, left: str, others: Sequence[str]) -> list[float]:
        """The ratios of one line and several others."""
        known = self._known.setdefault(left, {})
        for right in others:
            if right not in known:
                known[right] = self._first_ratio(left, right)
        return [known[right] for right in others]

    def _first_ratio(self, left: str, right: str) -> float:
        if left == right:
            return 1.0 if left else 0.0
        ratio = self._ratio(left[:MAX_COMPARED_CHARS], right[:MAX_COMPARED_CHARS])
        former = self.with_old_names(right)
        return ratio if former == right else max(ratio, self.ratio(left, former))

    def with_old_names(self, line: str) -> str:
        """Replace the new names in a line by their old names from the original."""
        if not self._renames:
            return line
        if line not in self._former:
            former = WORD.sub(lambda match: self._renames.get(match[0], match[0]), line)
            self._former[line] = former
        return self._former[line]

    def _ratio(self, left: str, right: str) -> float:
        old, new = self._traits_of(left), self._traits_of(right)
        if old.key is not None and old.key == new.key and not self._is_common(old.key):
            return SAME_KEY_RATIO
        if old.name is not None and old.name == new.name:
            return SAME_NAME_RATIO
        if old.prefix and old.prefix == new.prefix and left.startswith(right[: len(left)]):
            return SAME_KEY_RATIO
        num_chars = len(left) + len(right)
        wanted = MIN_SIMILARITY * num_chars
        if not left or not right or 2 * min(len(left), len(right)) < wanted:
            return 0.0
        num_common = (old.letters & new.letters).bit_count()
        if 2 * num_common < wanted:
            return 0.0
        num_shared = (old.words & new.words).bit_count()
        # One line has all words of the other, which are some, and more.
        if num_shared >= MIN_SHARED_WORDS and num_shared == min(old.num_words, new.num_words):
            return SAME_KEY_RATIO
        num_words = old.num_words + new.num_words
        # Two imports are not alike because both import.
        by_words = 2 * num_shared / num_words if num_words else 1.0
        if num_common / num_chars + by_words / 2 <= EVEN_PAIR:
            return 0.0
        return (likeness(left, right) + by_words) / 2

    def _traits_of(self, text: str) -> _Traits:
        known = self._traits.get(text)
        if known is None:
            words = self._words.of(text)
            known = self._traits[text] = _Traits(
                key=_key(text),
                name=definition_name(text),
                prefix=text[:MIN_PREFIX_CHARS] if len(text) >= MIN_PREFIX_CHARS else "",
                letters=self._letters.of(text),
                words=words,
                num_words=words.bit_count(),
            )
        return known

    @cached_property
    def _keys(self) -> Counter[str]:
        """Counts of the names that get a value; in a list of records a name says nothing."""
        return Counter(key for line in self._lines if (key := _key(line)) is not None)

    def _is_common(self, key: str) -> bool:
        return self._keys[key] > 1 + len(self._lines) // LINES_PER_KEY

    def pairs(self, old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, float]]:
        """Pairs of similar lines (place in old, place in new, ratio), rising, with the largest sum.

        Costs `len(old) * len(new)` comparisons, so pass few lines.
        """
        spend(len(old) * len(new))
        ratios = [self._ratios(text, new) for text in old]
        if max(chain.from_iterable(ratios), default=0.0) <= EVEN_PAIR:
            return []
        width = len(new) + 1
        best = [[0.0] * width for _ in range(len(old) + 1)]
        for row in range(len(old) - 1, -1, -1):
            for column in range(len(new) - 1, -1, -1):
                gain = ratios[row][column] - EVEN_PAIR
                paired = gain + best[row + 1][column + 1] if gain > 0 else 0.0
                best[row][column] = max(best[row + 1][column], best[row][column + 1], paired)
        return _path(best, ratios)

    def aligned(
        self, old: Sequence[str], new: Sequence[str], *, limit: int
    ) -> list[tuple[int, int, float]]:
        """Pairs as `pairs` gives them, but equal lines are paired first.

        Other lines are only paired between these. At most `limit` comparisons are made; where a gap
        takes more, its lines stay alone.
        """
        found: list[tuple[int, int, float]] = []
        old_start = new_start = 0
        for block in [*matching_blocks(old, new), Block(len(old), len(new), 0)]:
            gap = old[old_start : block.old_start], new[new_start : block.new_start]
            num_compared = len(gap[0]) * len(gap[1])
            if 0 < num_compared <= limit:
                limit -= num_compared
                found += [(a + old_start, b + new_start, ratio) for a, b, ratio in self.pairs(*gap)]
            steps = range(block.length)
            found += [(block.old_start + one, block.new_start + one, 1.0) for one in steps]
            old_start, new_start = block.old_start + block.length, block.new_start + block.length
        return found


def likeness(left: str, right: str) -> float:
    """The share of letters that two texts have in common, in the same order.

    Raises BudgetSpentError for texts that are too long and differ in too long a part.
    """
    num_letters = len(left) + len(right)
    if left == right:
        return 1.0 if left else 0.0
    num_equal = 0
    if len(left) * len(right) > _SMALL:
        head = _num_equal(left, right, is_head=True)
        left, right = left[head:], right[head:]
        tail = _num_equal(left, right, is_head=False)
        left, right = left[: len(left) - tail], right[: len(right) - tail]
        num_equal = head + tail
    spend(1 + len(left) * len(right) // LETTER_PAIRS)
    return 2 * (num_equal + LCSseq.similarity(left, right)) / num_letters


def _num_equal(left: str, right: str, *, is_head: bool) -> int:
    """Number of letters that two texts have in common at the start, or at the end."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if is_head:
            is_equal = left.startswith(right[low:middle], low)
        else:
            is_equal = left.endswith(
                right[len(right) - middle : len(right) - low], 0, len(left) - low
            )
        low, high = (middle, high) if is_equal else (low, middle - 1)
    return low


class _Traits(NamedTuple):
    """The properties by which lines are compared: parts that alone make a variant, and bit sets."""

    key: str | None
    name: str | None
    prefix: str
    letters: int
    words: int
    num_words: int


class _Occurrences:
    """Texts as sets of bits: one for the first occurrence of each part, one for its second, …

    The bits that two texts share number as many as the parts in common, each counted as often as
    it stands in both, and take a tenth of the time of two counters.
    """

    def __init__(self, parts_of: Callable[[str], list[str]]) -> None:
        self._parts_of = parts_of
        self._bits: dict[tuple[str, int], int] = {}
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The bits of one text."""
        known = self._known.get(text)
        if known is None:
            known = 0
            counts: dict[str, int] = {}
            for part in self._parts_of(text):
                count = counts[part] = counts.get(part, 0) + 1
                bit = self._bits.get((part, count))
                if bit is None:
                    bit = self._bits[part, count] = 1 << len(self._bits)
                known |= bit
            self._known[text] = known
        return known


def _telling_words(text: str) -> list[str]:
    return [word for word in WORD.findall(text) if word not in _KEYWORDS]


def _key(text: str) -> str | None:
    """The name that a line gives a value (`display: grid;`, `LIMIT = 8`)."""
    match = _NAMED_VALUE.match(text)
    return match["key"] if match else None


def _path(
    best: Sequence[Sequence[float]], ratios: Sequence[Sequence[float]]
) -> list[tuple[int, int, float]]:
    pairs: list[tuple[int, int, float]] = []
    row = column = 0
    while row < len(ratios) and column < len(ratios[row]):
        value = best[row][column]
        if value == best[row + 1][column]:
            row += 1
        elif value == best[row][column + 1]:
            column += 1
        else:
            pairs.append((row, column, ratios[row][column]))
            row, column = row + 1, column + 1
    return pairs
