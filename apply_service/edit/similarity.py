"""How alike two lines are, and which old lines a run of new ones stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

from apply_service.edit.alignment import Block, matching_blocks
from apply_service.edit.definition_names import MAX_REMEMBERED, definition_name

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
_WORD = re.compile(r"\w+")
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


class Similarity:
    """Compares stripped lines, and remembers what it has compared.

    `lines` is the original, stripped.
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = lines
        self._known: dict[tuple[str, str], float] = {}
        self._letters: dict[str, Counter[str]] = {}
        self._words: dict[str, Counter[str]] = {}

    def ratio(self, left: str, right: str) -> float:
        """Between 0 and 1: by characters and words; 0 if it cannot be above `EVEN_PAIR`."""
        if left == right:
            return 1.0 if left else 0.0
        key = (left, right)
        if key not in self._known:
            self._known[key] = self._ratio(left[:MAX_COMPARED_CHARS], right[:MAX_COMPARED_CHARS])
        return self._known[key]

    def _ratio(self, left: str, right: str) -> float:
        key = _remembered_key(left)
        if key is not None and key == _remembered_key(right) and not self._is_common(key):
            return SAME_KEY_RATIO
        name = definition_name(left)
        if name is not None and name == definition_name(right):
            return SAME_NAME_RATIO
        if min(len(left), len(right)) >= MIN_PREFIX_CHARS and (
            left.startswith(right) or right.startswith(left)
        ):
            return SAME_KEY_RATIO
        wanted = MIN_SIMILARITY * (len(left) + len(right))
        if not left or not right or 2 * min(len(left), len(right)) < wanted:
            return 0.0
        num_common = _num_common(self._counted(left), self._counted(right))
        if 2 * num_common < wanted:
            return 0.0
        if self._is_extended(left, right):
            return SAME_KEY_RATIO
        by_words = self._by_words(left, right)
        if num_common / (len(left) + len(right)) + by_words / 2 <= EVEN_PAIR:
            return 0.0
        by_letters = SequenceMatcher(None, left, right, autojunk=False).ratio()
        return (by_letters + by_words) / 2

    @cached_property
    def _keys(self) -> Counter[str]:
        """How often a name is given a value; in lists of records the same name says nothing."""
        return Counter(key for line in self._lines if (key := _key(line)) is not None)

    def _is_common(self, key: str) -> bool:
        return self._keys[key] > 1 + len(self._lines) // LINES_PER_KEY

    def _is_extended(self, left: str, right: str) -> bool:
        """Whether one line has all words of the other, which are some, and more."""
        old, new = self._named(left), self._named(right)
        smaller, larger = (old, new) if old.total() <= new.total() else (new, old)
        return smaller.total() >= MIN_SHARED_WORDS and smaller <= larger

    def _by_words(self, left: str, right: str) -> float:
        """The share of words in common: two imports are not alike because both import."""
        old, new = self._named(left), self._named(right)
        total = old.total() + new.total()
        return 2 * _num_common(old, new) / total if total else 1.0

    def _named(self, text: str) -> Counter[str]:
        if text not in self._words:
            self._words[text] = Counter(
                word for word in _WORD.findall(text) if word not in _KEYWORDS
            )
        return self._words[text]

    def _counted(self, text: str) -> Counter[str]:
        if text not in self._letters:
            self._letters[text] = Counter(text)
        return self._letters[text]

    def pairs(self, old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, float]]:
        """Look-alikes (place in old, place in new, ratio), rising, with the largest sum.

        Costs `len(old) * len(new)` comparisons, so pass few lines.
        """
        width = len(new) + 1
        best = [[0.0] * width for _ in range(len(old) + 1)]
        ratios = [[self.ratio(a, b) for b in new] for a in old]
        for row in range(len(old) - 1, -1, -1):
            for column in range(len(new) - 1, -1, -1):
                gain = ratios[row][column] - EVEN_PAIR
                paired = gain + best[row + 1][column + 1] if gain > 0 else 0.0
                best[row][column] = max(best[row + 1][column], best[row][column + 1], paired)
        return _path(best, ratios)

    def aligned(
        self, old: Sequence[str], new: Sequence[str], *, limit: int
    ) -> list[tuple[int, int, float]]:
        """As `pairs`, but equal lines are paired first, and others only between these.

        At most `limit` comparisons are made; where a gap takes more, its lines stay alone.
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


def _num_common(left: Counter[str], right: Counter[str]) -> int:
    """How many elements two counters have in common: `(left & right).total()` in half the time."""
    if len(left) > len(right):
        left, right = right, left
    get = right.get
    return sum([min(count, get(element, 0)) for element, count in left.items()])


@lru_cache(MAX_REMEMBERED)
def _remembered_key(text: str) -> str | None:
    """As `_key`, for texts of at most `MAX_COMPARED_CHARS` that are asked about again and again."""
    return _key(text)


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
