"""A placement as one run of tokens, with the places where it may be cut or needs evidence."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from lookup.merge_rules import GrammarPlacement

MAX_COMPARED = 512


class OriginalTrack:
    """The original without its removed lines, and the end tokens behind it.

    `line_starts` has one entry a line and one for the end tokens; a removed line has no tokens.
    """

    __slots__ = ("line_starts", "num_lines", "tokens")

    def __init__(
        self,
        lines: Sequence[Sequence[int]],
        removed: Sequence[tuple[int, int]],
        end_token_ids: Sequence[int],
    ) -> None:
        kept = list(lines)
        for start, end in removed:
            kept[start:end] = [()] * (end - start)
        self.num_lines = len(kept)
        self.line_starts = list(accumulate(map(len, kept), initial=0))
        self.tokens = (*chain.from_iterable(kept), *end_token_ids)

    def line_at(self, position: int) -> int:
        """The line of the token at `position`; `num_lines` for an end token."""
        return bisect_right(self.line_starts, position) - 1

    def next_kept(self, line: int) -> int:
        """The first kept line at or behind `line`; `num_lines` if there is none."""
        return self.line_at(self.line_starts[line])


@dataclass(frozen=True, slots=True)
class Borders:
    """Token positions where the model's own wish is evidence for or against a placement.

    `inside` are positions in the placement, `behind` in the original, after it was resumed.
    """

    inside: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()


class PlacementTrack:
    """The tokens of a placement, read line by line and on past lines that are kept.

    `stops` are the positions, ascending, at which there is a choice: starts of optional lines,
    and the end. `next_starts` and `line_numbers` are of the optional lines, by their start.
    """

    __slots__ = ("borders", "line_numbers", "next_starts", "stops", "tokens")

    def __init__(
        self,
        placement: GrammarPlacement,
        *,
        original: OriginalTrack,
        original_lines: Sequence[Sequence[int]],
    ) -> None:
        self.tokens = tuple(chain.from_iterable(placement.lines))
        starts = list(accumulate(map(len, placement.lines), initial=0))
        optional = placement.optional or ()
        numbers = [number for number, is_optional in enumerate(optional) if is_optional]
        self.line_numbers = {starts[number]: number for number in numbers}
        self.next_starts = {starts[number]: starts[number + 1] for number in numbers}
        self.stops = [*self.next_starts, len(self.tokens)]
        self.borders = _borders(placement, self.tokens, original, original_lines)

    def stop_behind(self, position: int) -> int:
        """The first stop after `position`."""
        return self.stops[bisect_right(self.stops, position)]

    def num_choices_behind(self, position: int) -> int:
        """Number of optional lines that start after `position`."""
        return len(self.stops) - 1 - bisect_right(self.stops, position)


def _borders(
    placement: GrammarPlacement,
    tokens: tuple[int, ...],
    original: OriginalTrack,
    original_lines: Sequence[Sequence[int]],
) -> Borders:
    """The tokens at which a placement really begins and ends.

    Context is taken off at both ends. The rest is entered at the first token in which it
    differs from the original going on, and left at the first token in which the original, resumed
    behind it, differs from the original going on before it. A mere insertion leaves the original
    where it was; there it is the second token, because the first one only begins a line.
    """
    before = original_lines[placement.start : placement.end]
    head, tail = _context(placement.lines, before)
    num_lines = len(placement.lines)
    if head + tail == num_lines == len(before):
        return Borders()
    compared = _Comparison(tokens, original, placement.start + head, placement.end)
    enter = sum(map(len, placement.lines[:head]))
    leave = len(tokens) - sum(map(len, placement.lines[num_lines - tail :]))
    entered = None if head + tail == num_lines else compared.first_difference(enter)
    if head + tail < len(before):
        left = compared.first_difference(leave)
    else:
        left = leave + _second_token(placement.lines[num_lines - tail :] or _resumed(compared))
    places = {place for place in (entered, left) if place is not None}
    limit = len(original.tokens) - compared.resumed
    return Borders(
        inside=tuple(sorted(place for place in places if place < len(tokens))),
        behind=tuple(
            sorted(
                place - len(tokens) + compared.resumed
                for place in places
                if len(tokens) <= place < len(tokens) + limit
            )
        ),
    )


def _context(lines: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Number of lines at the head, and of the rest at the tail, that equal the replaced ones."""
    limit = min(len(lines), len(before))
    head = 0
    while head < limit and tuple(lines[head]) == tuple(before[head]):
        head += 1
    tail = 0
    while tail < limit - head and tuple(lines[-1 - tail]) == tuple(before[-1 - tail]):
        tail += 1
    return head, tail


class _Comparison:
    """Compares a placement and the original behind it with the original from line `natural`."""

    def __init__(
        self, tokens: tuple[int, ...], original: OriginalTrack, natural: int, end: int
    ) -> None:
        self.tokens = tokens
        self.original = original
        self.natural = original.line_starts[natural]
        self.resumed = original.line_starts[end]

    def first_difference(self, offset: int) -> int | None:
        """The first different position from `offset` on, counted from the placement's start.

        None if there is none within `MAX_COMPARED` tokens.
        """
        resumed = self.original.tokens[self.resumed : self.resumed + MAX_COMPARED]
        written = (self.tokens[offset : offset + MAX_COMPARED] + resumed)[:MAX_COMPARED]
        natural = self.original.tokens[self.natural : self.natural + len(written)]
        for place, (token, other) in enumerate(zip(written, natural, strict=False)):
            if token != other:
                return offset + place
        return offset + len(natural) if len(natural) < len(written) else None


def _resumed(compared: _Comparison) -> Sequence[Sequence[int]]:
    """The first line of the original behind a placement."""
    original = compared.original
    line = original.line_at(compared.resumed)
    end = original.line_starts[line + 1] if line < original.num_lines else None
    return (original.tokens[compared.resumed : end],)


def _second_token(lines: Sequence[Sequence[int]]) -> int:
    """Offset of the second token of the first line, or of its only one."""
    return min(1, max(0, len(lines[0]) - 1))
