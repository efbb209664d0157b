"""An index of one original's lines, used to find the lines of a snippet."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate

# Letters and digits that a line needs to count in full ("}" and "else:" say almost nothing).
FULL_LETTERS = 6
_MAX_READ = 200
_LEAVING = re.compile(r"(?:return|raise|throw|break|continue)\b")


class LineIndex:
    """The lines of an original, their places by text, and the information in each text.

    Lines are compared without the space around them; the indentation is looked at later.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.stripped = [line.strip() for line in lines]
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._weights: dict[str, float] = {}
        self._fullness: dict[str, float] = {}
        for place, text in enumerate(self.stripped):
            self._places[text].append(place)
        self._bounds: tuple[int, int] | None = None
        self._filled = list(accumulate(map(bool, self.stripped), initial=0))

    def __len__(self) -> int:
        return len(self.lines)

    def places(self, text: str) -> Sequence[int]:
        """Places of the stripped `text`, rising; none for a blank line."""
        places = self._places.get(text, ()) if text else ()
        if self._bounds is None or not places:
            return places
        low, high = self._bounds
        return places[bisect_left(places, low) : bisect_left(places, high)]

    def weight(self, text: str) -> float:
        """The evidence in finding the stripped `text`: more if it is rare; 0 for a blank line."""
        known = self._weights.get(text)
        if known is None:
            count = len(self._places.get(text, ())) or 1
            rarity = math.log((len(self.lines) + 8) / count)
            known = 0.1 + self.fullness(text) * rarity if text else 0.0
            self._weights[text] = known
        return known

    def fullness(self, text: str) -> float:
        """The letters and digits of `text` as a share of a telling line's, from 0 to 1."""
        known = self._fullness.get(text)
        if known is None:
            known = min(sum(map(str.isalnum, text[:_MAX_READ])) / FULL_LETTERS, 1.0)
            self._fullness[text] = known
        return known

    @cached_property
    def indent_unit(self) -> str:
        """The file's step of indentation, as far as its lines show it."""
        return indent_unit(self.lines)

    def num_filled(self, start: int, end: int) -> int:
        """Number of lines with text in `[start, end)`."""
        return self._filled[end] - self._filled[start] if start < end else 0


def num_equal_lines(a: Sequence[str], i: int, b: Sequence[str], j: int, step: int) -> int:
    """Number of lines that are equal in `a` from `i` and `b` from `j`; `step` -1 goes back."""
    most = min(len(a) - i, len(b) - j) if step > 0 else min(i, j) + 1
    size, length = 0, 1
    while length and size < most:
        length = min(length, most - size)
        low, high = (size, size + length) if step > 0 else (1 - size - length, 1 - size)
        if list(a[i + low : i + high]) == list(b[j + low : j + high]):
            size, length = size + length, length * 2
        else:
            length //= 2
    return size


def indent_of(line: str) -> str:
    """The white space that `line` begins with."""
    return line[: len(line) - len(line.lstrip())]


def indent_unit(lines: Iterable[str]) -> str:
    """The smallest indentation in the lines; empty if no line is indented.

    Lines of a comment that begin with a star are indented by one space whatever the unit.
    """
    indents = {indent_of(line) for line in lines if line.strip() and line.lstrip()[0] != "*"}
    return min(filter(None, indents), key=len, default="")


def leaves(text: str) -> bool:
    """True if a line such as `return` makes the rest of its block unreachable."""
    return bool(_LEAVING.match(text)) and not text.endswith(("(", "[", "{", ",", "?"))
