"""Writes an edit as coding agents do: the changed code, some context, and markers.

Every snippet determines its merge: the context is lengthened until it stands only once in the
original. An edit whose context can never be unique gives no snippet.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from snippets.anchors import Anchors, is_placed
from snippets.definitions import (
    definition_around,
    header_name,
    indent_of,
)
from snippets.hunks import EditHunk, find_hunks, is_look_alike
from snippets.marker_forms import MarkerWriter
from snippets.written_segments import (
    Offsets,
    WrittenSegment,
    merged_lines,
    style_name,
)

GENERATOR_VERSION = 5

MAX_CONTEXT = 8
_CONTEXT_WEIGHTS = ((0, 6), (1, 26), (2, 30), (3, 22), (4, 10), (6, 6))
_MAX_DEFINITION_LINES = 40
_AIRY_SHARE = 0.3
_DEFINITION_SHARE = 0.55
_DIRECTIVE_SHARE = 0.3
_HEADER_SHARE = 0.3
_MAX_HEADER_DISTANCE = 12


@dataclass(frozen=True, slots=True)
class WrittenSnippet:
    """The lines that an agent would send, and the name of the style.

    `segments` are the true places of the lines between the markers, if the writer tells.
    """

    lines: list[str]
    style: str
    segments: tuple[WrittenSegment, ...] = ()


def write_snippet(
    original: Sequence[str], expected: Sequence[str], *, language: str, rng: random.Random
) -> WrittenSnippet | None:
    """A lazy update that turns `original` into `expected`, or None if none would be clear."""
    hunks = find_hunks(original, expected)
    if not hunks or not original:
        return None
    writer = _SegmentWriter(original, expected, language, rng)
    segments = []
    for hunk in hunks:
        segment = writer.write(hunk)
        if segment is None:
            return None
        segments.append(segment)
    offsets = Offsets(hunks)
    joined = _join(segments, original, expected, offsets, rng)
    if rng.random() < _AIRY_SHARE:
        joined = _airy(joined, original)
    if merged_lines(joined, original) != list(expected):
        return None
    markers = MarkerWriter(language, rng)
    lines = _with_markers(joined, original, markers)
    if any(line.strip() for line in lines):
        return WrittenSnippet(lines, style_name(joined, original))
    return None


class _SegmentWriter:
    """Chooses the form and the context of one hunk."""

    def __init__(
        self, original: Sequence[str], expected: Sequence[str], language: str, rng: random.Random
    ) -> None:
        self._original = original
        self._expected = expected
        self._language = language
        self._rng = rng
        self._anchors = Anchors(original)

    def write(self, hunk: EditHunk) -> WrittenSegment | None:
        """The segment, or None if no context makes its place clear."""
        roll = self._rng.random()
        if roll < _DEFINITION_SHARE:
            segment = self._definition(hunk)
            if segment is not None:
                return segment
        if roll > 1 - _DIRECTIVE_SHARE and hunk.is_deletion:
            segment = self._directive(hunk)
            if segment is not None:
                return segment
        return self._with_context(hunk)

    def _definition(self, hunk: EditHunk) -> WrittenSegment | None:
        """The whole definition around the hunk, without any context."""
        span = definition_around(self._original, hunk.old_start, hunk.old_end, self._language)
        if span is None or span[1] - span[0] > _MAX_DEFINITION_LINES:
            return None
        start, end = span
        if not self._anchors.is_unique([self._original[start]]):
            return None
        is_inside = start < hunk.old_start and hunk.old_end < end
        if not is_inside or end - start == len(self._original):
            return None
        return WrittenSegment(start, end, [], "definition")

    def _directive(self, hunk: EditHunk) -> WrittenSegment | None:
        """`# remove name` in place of a removed definition."""
        first = hunk.old_start
        while first < hunk.old_end and not self._original[first].strip():
            first += 1
        header = self._original[first] if first < hunk.old_end else ""
        name = header_name(header)
        span = definition_around(self._original, first, first + 1, self._language)
        if name is None or span is None or span[0] != first or span[1] > hunk.old_end:
            return None
        rest = self._original[span[1] : hunk.old_end]
        if any(line.strip() for line in rest) or not self._anchors.is_unique([header]):
            return None
        comment = MarkerWriter(self._language, self._rng).comment(f"remove {name}")
        return WrittenSegment(
            hunk.old_start, hunk.old_end, [indent_of(header) + comment], "remove_directive"
        )

    def _with_context(self, hunk: EditHunk) -> WrittenSegment | None:
        num_before, num_after = self._choose_context(hunk)
        longest = MAX_CONTEXT * 2
        for extra in range(longest):
            start = self._anchors.reach_up(hunk.old_start, num_before)
            end = self._anchors.reach_down(hunk.old_end, num_after)
            if is_placed(self._anchors, hunk, start, end):
                start = self._reach_header(hunk, start)
                return WrittenSegment(start, end, [], self._context_style(hunk, start, end))
            if self._needs_after(hunk, num_before, num_after) or (extra % 2 and num_after):
                num_after += 1
            else:
                num_before += 1
            if max(num_before, num_after) > MAX_CONTEXT:
                return None
        return None

    def _reach_header(self, hunk: EditHunk, start: int) -> int:
        """Sometimes extend the context to the header of the definition around the hunk."""
        if self._rng.random() >= _HEADER_SHARE or start == hunk.old_start:
            return start
        span = definition_around(self._original, start, start + 1, self._language)
        is_near = span is not None and start - span[0] <= _MAX_HEADER_DISTANCE
        return span[0] if span is not None and is_near else start

    def _choose_context(self, hunk: EditHunk) -> tuple[int, int]:
        sizes, weights = zip(*_CONTEXT_WEIGHTS, strict=True)
        before, after = self._rng.choices(sizes, weights, k=2)
        if not hunk.is_insertion and not self._is_look_alike(hunk):
            return max(before, 1), max(after, 1)
        if before == after == 0:
            before = 1
        if self._rng.random() < 0.3:
            return (before or 1, 0) if self._rng.random() < 0.7 else (0, after or 1)
        return before, after

    def _needs_after(self, hunk: EditHunk, num_before: int, num_after: int) -> bool:
        return num_after == 0 and num_before > 2 and not hunk.is_insertion

    def _is_look_alike(self, hunk: EditHunk) -> bool:
        return is_look_alike(hunk.old(self._original), hunk.new(self._expected))

    def _context_style(self, hunk: EditHunk, start: int, end: int) -> str:
        if start < hunk.old_start and end > hunk.old_end:
            return "context"
        if start < hunk.old_start:
            return "context_before"
        return "context_after" if end > hunk.old_end else "border"


def _join(
    segments: Sequence[WrittenSegment],
    original: Sequence[str],
    expected: Sequence[str],
    offsets: Offsets,
    rng: random.Random,
) -> list[WrittenSegment]:
    """Fill in the new lines, and join segments that (almost) touch."""
    joined: list[WrittenSegment] = []
    for segment in segments:
        last = joined[-1] if joined else None
        if last is not None and last.style != "remove_directive" != segment.style:
            gap = original[last.old_end : segment.old_start]
            is_close = not any(line.strip() for line in gap) or (
                len(gap) < 3 and rng.random() < 0.7
            )
            if is_close or segment.old_start <= last.old_end:
                style = last.style if last.style == segment.style else "context"
                joined[-1] = replace(
                    last,
                    old_start=min(last.old_start, segment.old_start),
                    old_end=max(last.old_end, segment.old_end),
                    style=style,
                )
                continue
        joined.append(segment)
    return [
        segment
        if segment.style == "remove_directive"
        else replace(
            segment,
            new_lines=list(expected[offsets.span(segment.old_start, segment.old_end)]),
        )
        for segment in joined
    ]


def _airy(segments: Sequence[WrittenSegment], original: Sequence[str]) -> list[WrittenSegment]:
    """Show the blank lines between a segment and the lines that its markers leave out."""
    airy: list[WrittenSegment] = []
    for number, segment in enumerate(segments):
        start, end, lines = segment.old_start, segment.old_end, segment.new_lines
        floor = airy[-1].old_end if airy else 0
        ceiling = segments[number + 1].old_start if number + 1 < len(segments) else len(original)
        if start > floor + 1 and not original[start - 1].strip():
            start, lines = start - 1, [original[start - 1], *lines]
        if end + 1 < ceiling and not original[end].strip():
            end, lines = end + 1, [*lines, original[end]]
        is_directive = segment.style == "remove_directive"
        airy.append(
            segment
            if is_directive
            else replace(segment, old_start=start, old_end=end, new_lines=lines)
        )
    return airy


def _with_markers(
    segments: Sequence[WrittenSegment], original: Sequence[str], markers: MarkerWriter
) -> list[str]:
    lines: list[str] = []
    shown_until = 0
    for segment in segments:
        if segment.old_start > shown_until:
            lines.append(markers.marker(original, shown_until, segment.old_start))
        lines.extend(segment.new_lines)
        shown_until = segment.old_end
    if shown_until < len(original):
        lines.append(markers.marker(original, shown_until, len(original)))
    return lines
