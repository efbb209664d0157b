"""How many blank lines stand between neighbouring lines of a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Gap(NamedTuple):
    """Two neighbouring filled lines, without indentation; "" is the border of the text.

    `number` is the place of the right one, counted from 1.
    """

    left: str
    right: str
    num_blank: int
    number: int


def _empty() -> defaultdict[str, set[int]]:
    return defaultdict(set)


def _empty_pairs() -> defaultdict[tuple[str, str], set[int]]:
    return defaultdict(set)


@dataclass(frozen=True, slots=True)
class GapTable:
    """The numbers of blank lines that were seen between, after and before lines."""

    between: defaultdict[tuple[str, str], set[int]] = field(default_factory=_empty_pairs)
    after: defaultdict[str, set[int]] = field(default_factory=_empty)
    before: defaultdict[str, set[int]] = field(default_factory=_empty)

    def add(self, gaps: Iterable[Gap]) -> None:
        """Take in more gaps."""
        for gap in gaps:
            self.between[gap.left, gap.right].add(gap.num_blank)
            self.after[gap.left].add(gap.num_blank)
            self.before[gap.right].add(gap.num_blank)


def squeeze(line: str) -> str:
    """A line without its indentation and with single spaces, to compare by content."""
    return " ".join(line.split())


def gaps_of(texts: Sequence[str]) -> Iterator[Gap]:
    """All gaps of a text of squeezed lines, its borders included; none if all are blank."""
    left, num_blank = "", 0
    for number, text in enumerate(texts, start=1):
        if not text:
            num_blank += 1
            continue
        yield Gap(left, text, num_blank, number)
        left, num_blank = text, 0
    if left:
        yield Gap(left, "", num_blank, len(texts) + 1)
