"""How many blank lines stand between neighbouring lines of a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from typing import NamedTuple


class Gap(NamedTuple):
    """Two neighbouring filled lines, without indentation; "" is the border of the text.

    `number` is the place of the right one, counted from 1.
    """

    left: str
    right: str
    num_blank: int
    number: int


class GapTable:
    """The numbers of blank lines that were seen between, after and before lines."""

    def __init__(self) -> None:
        self._between: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._after: defaultdict[str, set[int]] = defaultdict(set)
        self._before: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, gaps: Iterable[Gap]) -> None:
        """Take in more gaps."""
        for gap in gaps:
            self._between[gap.left, gap.right].add(gap.num_blank)
            self.add_after(gap)
            self.add_before(gap)

    def add_after(self, gap: Gap) -> None:
        """Take in a gap for its left line alone."""
        self._after[gap.left].add(gap.num_blank)

    def add_before(self, gap: Gap) -> None:
        """Take in a gap for its right line alone."""
        self._before[gap.right].add(gap.num_blank)

    def has(self, left: str, right: str) -> bool:
        """Whether the lines were seen as neighbours."""
        return (left, right) in self._between

    def between(self, left: str, right: str) -> Set[int]:
        """How many blank lines were seen between neighbours."""
        return self._between.get((left, right), frozenset())

    def after(self, left: str) -> Set[int]:
        """How many blank lines were seen after a line."""
        return self._after.get(left, frozenset())

    def before(self, right: str) -> Set[int]:
        """How many blank lines were seen before a line."""
        return self._before.get(right, frozenset())


def squeeze(line: str) -> str:
    """A line without its indentation and with single spaces, to compare by content."""
    return " ".join(line.split())


def gaps_of(
    texts: Sequence[str], *, first_number: int = 1, around: Container[str] | None = None
) -> Iterator[Gap]:
    """The gaps of a text of squeezed lines, its borders included; none if all lines are blank.

    `first_number` is the number of the first line. `around` leaves gaps out that have none of its
    lines on either side.
    """
    filled = [place for place, text in enumerate(texts) if text]
    if not filled:
        return
    last_text, last_place = "", -1
    for place in [*filled, len(texts)]:
        text = texts[place] if place < len(texts) else ""
        if around is None or text in around or last_text in around:
            yield Gap(last_text, text, place - last_place - 1, first_number + place)
        last_text, last_place = text, place
