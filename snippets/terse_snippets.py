"""Writes an edit as brief agents do: with very little context, headers and markers often left off.

Nothing makes these updates clear: a wrong place may fit as well as the true one. Beside the
updates of `writer`, they teach which places are likely.

An insertion between equal lines can be told in several ways; the most readable one is chosen, as
agents do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from snippets.definitions import CodeBlock, blocks_around, holds_members, indent_of, is_whole
from snippets.hunks import EditHunk, find_hunks
from snippets.marker_forms import MarkerWriter
from snippets.terse_views import TerseViews, View, changes_of
from snippets.writer import WrittenSnippet
from snippets.written_segments import (
    Offsets,
    WrittenSegment,
    merged_lines,
    style_name,
)

TERSE_GENERATOR_VERSION = 1

_FORMS = (
    ("... existing code ...", 64),
    ("...", 22),
    ("...existing code...", 2),
    ("... unchanged ...", 3),
    ("... rest unchanged ...", 2),
    ("... rest of the code ...", 2),
    ("named", 5),
)
# Of updates that may lack it: a quarter of all have no marker at their start, a fifth none at the
# end. Agents that leave off the first often leave off the last too.
_NO_LEADING_SHARE = 0.29
_NO_TRAILING_SHARE = 0.16
_NO_OUTER_SHARE = 0.5
_AIRY_SHARE = 0.5
_EVEN_SHARE = 0.75
_INDENTED_SHARE = 0.3
_SCOPE_INDENT_SHARE = 0.5
_SHORT_GAP_SHARE = 0.5
_OPENERS = (":", "{", "(", "[")
_CLOSERS = ("}", ")", "]")


def write_terse_snippet(
    original: Sequence[str], expected: Sequence[str], *, language: str, rng: random.Random
) -> WrittenSnippet | None:
    """A brief update that is meant to turn `original` into `expected`; None if nothing changes.

    All new lines with text are in it, in their order.
    """
    hunks = slid_insertions(find_hunks(original, expected), expected)
    if not hunks or not original:
        return None
    segments = terse_segments(original, expected, hunks, language=language, rng=rng)
    if merged_lines(segments, original) != list(expected):
        return None
    lines = _Page(original, segments, language, rng).lines(hunks)
    if any(line.strip() for line in lines):
        style = f"terse_{style_name(segments, original)}"
        return WrittenSnippet(lines, style, tuple(segments))
    return None


def terse_segments(
    original: Sequence[str],
    expected: Sequence[str],
    hunks: Sequence[EditHunk],
    *,
    language: str,
    rng: random.Random,
) -> list[WrittenSegment]:
    """The segments that show the hunks, in order, each with its true place."""
    terse = TerseViews(original, expected, language, rng)
    views = [view for change in changes_of(hunks) for view in terse.of(change)]
    offsets = Offsets(hunks)
    return [
        WrittenSegment(
            view.start, view.end, list(expected[offsets.span(view.start, view.end)]), view.style
        )
        for view in _joined(views, original, rng)
    ]


def _joined(views: Sequence[View], original: Sequence[str], rng: random.Random) -> list[View]:
    """The views in order, joined where a marker would not be worth its line."""
    joined: list[View] = []
    for view in sorted(views, key=lambda view: (view.start, view.end)):
        last = joined[-1] if joined else None
        gap = original[last.end : view.start] if last is not None else ()
        num_hidden = sum(1 for line in gap if line.strip())
        if last is not None and num_hidden < 2 + (rng.random() < _SHORT_GAP_SHARE):
            style = last.style if last.style == view.style else "joined"
            joined[-1] = View(last.start, max(last.end, view.end), style)
        else:
            joined.append(view)
    return joined


def slid_insertions(hunks: Sequence[EditHunk], expected: Sequence[str]) -> list[EditHunk]:
    """The hunks, each insertion slid so that its lines are whole definitions or statements.

    Failing that, the first line has text if possible. Hunks may come to touch, but not to overlap.
    """
    slid: list[EditHunk] = []
    for number, hunk in enumerate(hunks):
        floor = slid[-1].new_end if slid else 0
        following = hunks[number + 1] if number + 1 < len(hunks) else None
        ceiling = len(expected) if following is None else following.new_start
        slid.append(_slid(hunk, expected, floor, ceiling) if hunk.is_insertion else hunk)
    return slid


def _slid(hunk: EditHunk, expected: Sequence[str], floor: int, ceiling: int) -> EditHunk:
    """The insertion at its best place between two borders of the expected text."""
    steps = [0]
    start, end = hunk.new_start, hunk.new_end
    while start > floor and expected[start - 1] == expected[end - 1]:
        start, end = start - 1, end - 1
        steps.append(start - hunk.new_start)
    start, end = hunk.new_start, hunk.new_end
    while end < ceiling and expected[start] == expected[end]:
        start, end = start + 1, end + 1
        steps.append(start - hunk.new_start)

    def reads_well(step: int) -> tuple[bool, bool, int]:
        lines = expected[hunk.new_start + step : hunk.new_end + step]
        return is_whole(lines), bool(lines[0].strip()), -abs(step)

    best = max(steps, key=reads_well)
    return replace(
        hunk,
        old_start=hunk.old_start + best,
        old_end=hunk.old_end + best,
        new_start=hunk.new_start + best,
        new_end=hunk.new_end + best,
    )


class _Page:
    """Lays out segments and markers, in one style throughout an update."""

    def __init__(
        self,
        original: Sequence[str],
        segments: Sequence[WrittenSegment],
        language: str,
        rng: random.Random,
    ) -> None:
        self._original = original
        self._segments = segments
        self._language = language
        self._rng = rng
        self._markers = MarkerWriter(language, rng, forms=_FORMS)
        self._is_airy = rng.random() < _AIRY_SHARE
        self._is_even = rng.random() < _EVEN_SHARE
        self._is_indented = rng.random() < _INDENTED_SHARE

    def lines(self, hunks: Sequence[EditHunk]) -> list[str]:
        """The update for these hunks."""
        is_headless, is_tailless = self._left_off(hunks)
        lines: list[str] = []
        for left, right in pairwise((None, *self._segments, None)):
            below = [] if right is None else right.new_lines
            is_left_off = is_headless if left is None else is_tailless and right is None
            marker = None if is_left_off else self._marker(left, right)
            lines = [*lines, *below] if marker is None else self._put(marker, left, lines, below)
        return lines

    def _left_off(self, hunks: Sequence[EditHunk]) -> tuple[bool, bool]:
        """Two flags: the first and the last marker are missing; never beside added lines."""
        borders = {0, len(self._original), *(one.old_start for one in hunks if one.is_insertion)}
        can_begin = self._segments[0].old_start not in borders
        can_end = self._segments[-1].old_end not in borders
        is_headless = can_begin and self._rng.random() < _NO_LEADING_SHARE
        share = _NO_OUTER_SHARE if is_headless else _NO_TRAILING_SHARE
        return is_headless, can_end and self._rng.random() < share

    def _put(
        self, marker: str, left: WrittenSegment | None, above: list[str], below: list[str]
    ) -> list[str]:
        """The lines with a marker between them, set off by blank lines or not."""
        scope = self._scope(left)
        is_in_function = scope is not None and not holds_members(self._original[scope.header])
        if self._is_airy and not is_in_function:
            if above and not above[-1].rstrip().endswith(_OPENERS):
                above = self._spaced(above[::-1])[::-1]
            if below and not below[0].lstrip().startswith(_CLOSERS):
                below = self._spaced(below)
        return [*above, marker, *below]

    def _spaced(self, lines: list[str]) -> list[str]:
        """The lines behind a blank one, or behind those they begin with."""
        num_blank = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        return lines if num_blank and not self._is_even else ["", *lines[num_blank:]]

    def _marker(self, left: WrittenSegment | None, right: WrittenSegment | None) -> str | None:
        """The marker between two segments; None if nothing with text stands there."""
        start = 0 if left is None else left.old_end
        end = len(self._original) if right is None else right.old_start
        omitted = self._original[start:end]
        if not any(line.strip() for line in omitted):
            return None
        return self._indent(left, right, end) + self._markers.text(omitted)

    def _indent(self, left: WrittenSegment | None, right: WrittenSegment | None, end: int) -> str:
        """The indentation of the body under the last shown header, or of the lines beside."""
        scope = self._scope(left)
        if left is not None and scope is not None:
            is_inside = end <= scope.end or left.old_end == scope.body_start
            if is_inside or self._rng.random() < _SCOPE_INDENT_SHARE:
                return _first_indent(self._original[scope.body_start : scope.body_end])
        beside = left or right
        if not self._is_indented or beside is None:
            return ""
        filled = [line for line in beside.new_lines if line.strip()]
        return min(map(indent_of, filled), key=len, default="")

    def _scope(self, left: WrittenSegment | None) -> CodeBlock | None:
        """The innermost definition that continues behind a segment and whose header is shown."""
        if left is None or left.old_end == len(self._original):
            return None
        at = left.old_end
        return next(
            (
                block
                for block in blocks_around(self._original, at, at + 1, self._language)
                if any(one.old_start <= block.header < one.old_end for one in self._segments)
                and block.header < at
            ),
            None,
        )


def _first_indent(lines: Sequence[str]) -> str:
    return indent_of(next((line for line in lines if line.strip()), ""))
