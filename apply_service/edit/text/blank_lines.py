"""Counts the blank lines between neighbouring lines of a text."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Gap(NamedTuple):
    """Two neighbouring filled lines, without indentation; "" is the border of the text.

    `number` is the place of the right one, counted from 1.
    """

    left: str
    right: str
    num_blank: int
    number: int


class GapTable:
    """Numbers of blank lines that were seen between, after and before lines.

    `afters` and `befores` are more gaps, known for their left or their right line alone.
    """

    def __init__(
        self, gaps: Sequence[Gap], *, afters: Sequence[Gap] = (), befores: Sequence[Gap] = ()
    ) -> None:
        self._between = _numbers(((gap.left, gap.right), gap.num_blank) for gap in gaps)
        self._after_gaps = [*gaps, *afters]
        self._before_gaps = [*gaps, *befores]

    @cached_property
    def _after(self) -> Mapping[str, tuple[int, ...]]:
        return _numbers((gap.left, gap.num_blank) for gap in self._after_gaps)

    @cached_property
    def _before(self) -> Mapping[str, tuple[int, ...]]:
        return _numbers((gap.right, gap.num_blank) for gap in self._before_gaps)

    def has(self, left: str, right: str) -> bool:
        """True if the lines were seen as neighbours."""
        return (left, right) in self._between

    def between(self, left: str, right: str) -> tuple[int, ...]:
        """The numbers of blank lines that were seen between two neighbours."""
        return self._between.get((left, right), ())

    def after(self, left: str) -> tuple[int, ...]:
        """The numbers of blank lines that were seen after a line."""
        return self._after.get(left, ())

    def before(self, right: str) -> tuple[int, ...]:
        """The numbers of blank lines that were seen before a line."""
        return self._before.get(right, ())


def _numbers(seen: Iterable[tuple[Key, int]]) -> Mapping[Key, tuple[int, ...]]:
    """The different numbers of each key; a tuple, as nearly all have but one."""
    numbers: dict[Key, tuple[int, ...]] = {}
    for key, number in seen:
        known = numbers.get(key, ())
        if number not in known:
            numbers[key] = (*known, number)
    return numbers


def squeeze(line: str) -> str:
    """Remove indentation and repeated spaces from a line, to compare lines by content."""
    return " ".join(line.split())


def gaps_of(
    texts: Sequence[str], *, first_number: int = 1, around: Container[str] | None = None
) -> Iterator[Gap]:
    """Gaps of a text of squeezed lines, its borders included; none if all lines are blank.

    `first_number` is the number of the first line. With `around`, only gaps beside one of its
    lines are given.
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
