"""Hunks of a diff or a patch: the place that a header names, and the lines behind their signs.

A header names a line number, or a line of the original by its text.

Agents put the sign before the line, over its first space, or with a space after it; they write
context with the leading space or without. The original tells which style an update uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

import msgspec
from msgspec.structs import replace

from apply_service.edit.read.original_index import OriginalIndex, is_telling
from apply_service.edit.read.segment import Segment, SegmentLine

LineChange = Literal["context", "removed", "new"]
# Looking for places where a hunk jumps costs steps; a hunk that needs more stays in one piece.
MAX_STEPS = 200_000
MAX_LOOK_BACK = 30
# A heading that stands in no line as a whole is looked for inside all of them.
MAX_SEARCHES = 100
_NUMBERS = re.compile(r"@@+\s+-(?P<start>\d{1,9})(?:,(?P<count>\d+))?(?=[\s,+@]|$)")


def is_hunk_header(line: str) -> bool:
    """True if `line` begins a hunk: `@@`, `@@ -1,2 +1,3 @@`, `@@ class Reader`."""
    return line.startswith("@@") and (line.rstrip("@ ") == "" or line[2:3] == " ")


def has_numbers(header: str) -> bool:
    """True if a hunk header names lines by number, as a diff does."""
    return _NUMBERS.match(header) is not None


class HeaderReader:
    """Finds the lines of one original that hunk headers name."""

    def __init__(self, original: OriginalIndex) -> None:
        self._original = original
        self._num_searches = 0

    def line_hint(self, header: str, *, after: int | None = None) -> int | None:
        """The line that a header names, from 1, or None; of a heading the first one from `after`.

        A heading that stands in several lines says nothing. Numbers are taken as they are: the
        first old line, or the line before which a hunk without old lines stands.
        """
        numbers = _NUMBERS.match(header)
        if numbers is not None:
            start = int(numbers["start"])
            return start + 1 if numbers["count"] == "0" else max(start, 1)
        text = header.lstrip("@")
        text = text.partition("@@")[0].strip() if text[:1].isspace() else ""
        return self.find_heading(text, after=after) if is_telling(text) else None

    def find_heading(self, text: str, *, after: int | None = None) -> int | None:
        """The line that is `text`, or else contains it; from 1.

        The only one, or the first from `after` on.
        """
        stripped = self._original.stripped
        start = 0 if after is None else after - 1
        if text in self._original.counts:
            found = [place for place in self._original.places[text] if place >= start]
        elif self._num_searches < MAX_SEARCHES:
            self._num_searches += 1
            found = [place for place in range(start, len(stripped)) if text in stripped[place]]
        else:
            return None
        is_told = len(found) == 1 or (bool(found) and after is not None)
        return found[0] + 1 if is_told else None


class HunkLine(msgspec.Struct, frozen=True, gc=False):
    """A line without its sign."""

    change: LineChange
    line: SegmentLine


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHunk:
    """Consecutive signed lines; `line_hint` is the line that the header names, from 1.

    `is_below_hint` if that is a heading above them.
    """

    lines: tuple[SegmentLine, ...]
    line_hint: int | None = None
    is_below_hint: bool = False
    is_at_end: bool = False


class HunkReader:
    """Removes the signs from hunks, in the one style of an update."""

    def __init__(
        self, original: OriginalIndex, hunks: Sequence[SignedHunk], *, is_spaced: bool
    ) -> None:
        self._original = original
        self._texts = frozenset(original.lines)
        lines = [line.text for hunk in hunks for line in hunk.lines if line.text.strip()]
        self._is_spaced = self._vote_spaced(lines, default=is_spaced)
        self._without_sign = self._vote_sign(lines)
        self._num_steps = 0

    def segments(self, hunk: SignedHunk) -> list[Segment]:
        """The hunk as one segment, or as several where its old lines are not neighbours."""
        signed = _trimmed([self._read_line(line) for line in hunk.lines])
        if not signed:
            return []
        pieces = self._split(signed)
        segments = [_segment(piece) for piece in pieces]
        segments[0] = replace(
            segments[0], old_line_hint=hunk.line_hint, is_below_hint=hunk.is_below_hint
        )
        segments[-1] = replace(segments[-1], has_gap_after=not hunk.is_at_end)
        return segments

    def _vote_spaced(self, lines: Iterable[str], *, default: bool) -> bool:
        """True if context lines have an extra space in front."""
        vote = 0
        for line in lines:
            if line[0] == " ":
                vote += (line[1:] in self._texts) - (line in self._texts)
            elif line[0] not in "+-":
                vote -= line in self._texts
        return vote > 0 or (vote == 0 and default)

    def _vote_sign(self, lines: Sequence[str]) -> Callable[[str], str]:
        """The way to remove a sign so that removed lines match the original."""
        styles = (_after_sign, _over_sign, _after_sign_and_space)
        removed = [line for line in lines if line[0] == "-"]
        votes = [sum(style(line) in self._texts for line in removed) for style in styles]
        if not any(votes) and not self._is_spaced:
            votes = self._vote_by_indent(lines, styles)
        return styles[votes.index(max(votes))]

    def _vote_by_indent(
        self, lines: Sequence[str], styles: Sequence[Callable[[str], str]]
    ) -> list[int]:
        """Votes for the style that gives new lines the indentation of the line before."""
        votes = [0] * len(styles)
        for before, line in pairwise(lines):
            if line[0] == "+" and before[0] not in "+-":
                for number, style in enumerate(styles):
                    votes[number] += _indent(style(line)) == _indent(before)
        return votes

    def _read_line(self, line: SegmentLine) -> HunkLine:
        text = line.text
        sign = text[:1]
        bare = text[1:].strip()
        if sign == "-" and not (text in self._texts and bare not in self._original.counts):
            return HunkLine("removed", replace(line, text=self._without_sign(text)))
        if sign == "+" and not (text in self._texts and not self._is_spaced):
            return HunkLine("new", replace(line, text=self._without_sign(text), role="new"))
        if sign == " " and text.strip():
            has_shorter, has_whole = text[1:] in self._texts, text in self._texts
            is_spaced = self._is_spaced if has_shorter == has_whole else has_shorter
            text = text[1:] if is_spaced else text
        elif not text.strip():
            text = text[1:] if self._is_spaced else text
        return HunkLine("context", replace(line, text=text, role="context"))

    def _split(self, signed: Sequence[HunkLine]) -> list[list[HunkLine]]:
        """Cut where two successive old lines stand apart in the original."""
        starts = self._jumps(signed)
        pieces: list[list[HunkLine]] = [[]]
        for place, line in enumerate(signed):
            if place in starts:
                pieces.append([])
            pieces[-1].append(line)
        return [piece for piece in map(_trimmed, pieces) if piece]

    def _jumps(self, signed: Sequence[HunkLine]) -> set[int]:
        """Places in `signed` where a run of old lines begins that stands further down."""
        original = self._original
        jumps: set[int] = set()
        run: set[int] = set()
        astray: list[int] = []
        has_telling = False
        for place, line in enumerate(signed):
            text = line.line.text.strip()
            if line.change == "new" or not text:
                continue
            found = original.filled_places.get(text, [])
            self._num_steps += len(run) + len(found)
            if self._num_steps > MAX_STEPS:
                return set()
            following = {rank + 1 for rank in run if original.filled_at(rank + 1) == text}
            if following or not run:
                run, astray = following or set(found), []
                has_telling = has_telling or is_telling(text)
                continue
            floor = min(run) + 1
            beyond = {rank for rank in found if rank > floor}
            if beyond and has_telling and is_telling(text):
                start = self._first_of(signed, [*astray, place], beyond)
                jumps.add(_with_new_before(signed, start))
                run, astray = beyond, []
            else:
                run = {rank + 1 for rank in run}
                astray.append(place)
        return jumps

    def _first_of(
        self, signed: Sequence[HunkLine], places: Sequence[int], ranks: Iterable[int]
    ) -> int:
        """The first of `places` from which the lines lead up to one of `ranks`."""
        nearby = places[-MAX_LOOK_BACK:]
        first = len(nearby) - 1
        for rank in islice(ranks, MAX_LOOK_BACK):
            start = len(nearby) - 1
            while start and (
                self._original.filled_at(rank - (len(nearby) - start))
                == signed[nearby[start - 1]].line.text.strip()
            ):
                start -= 1
            first = min(first, start)
        return nearby[first]


def _segment(piece: Sequence[HunkLine]) -> Segment:
    return Segment(
        lines=tuple(line.line for line in piece if line.change != "removed"),
        old=tuple(line.line.text for line in piece if line.change != "new"),
    )


def _trimmed(signed: Sequence[HunkLine]) -> list[HunkLine]:
    """The hunk without blank context at its borders, which often only separates hunks."""
    filled = [
        place
        for place, line in enumerate(signed)
        if line.change != "context" or line.line.text.strip()
    ]
    return list(signed[filled[0] : filled[-1] + 1]) if filled else []


def _with_new_before(signed: Sequence[HunkLine], place: int) -> int:
    """The start of a piece with its first old line at `place`, new lines before it included."""
    start = place
    while start and signed[start - 1].change == "new":
        start -= 1
    is_replaced = signed[place].change == "removed" and start < place
    is_free = start == 0 or signed[start - 1].change == "context"
    return start if is_replaced and is_free else place


def _after_sign(line: str) -> str:
    return line[1:]


def _over_sign(line: str) -> str:
    return " " + line[1:]


def _after_sign_and_space(line: str) -> str:
    return line[2:] if line[1:2] == " " else line[1:]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
