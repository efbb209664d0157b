"""The runs of an update between its markers, with the places where they stand in the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snippets.hunks import EditHunk


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """A run of the snippet between markers: `old` of the original is shown as `new_lines`."""

    old_start: int
    old_end: int
    new_lines: list[str]
    style: str


class Offsets:
    """Maps borders between lines of the original to borders of the expected text."""

    def __init__(self, hunks: Sequence[EditHunk]) -> None:
        self._hunks = hunks

    def new(self, old: int) -> int:
        """The border in the expected text; `old` is not inside a hunk. At a hunk: before it."""
        shift = 0
        for hunk in self._hunks:
            if hunk.old_start >= old:
                break
            shift = hunk.new_end - hunk.old_end
        return old + shift

    def new_after(self, old: int) -> int:
        """The border as in `new`, but behind a hunk that ends at `old`."""
        shift = 0
        for hunk in self._hunks:
            if hunk.old_end > old:
                break
            shift = hunk.new_end - hunk.old_end
        return old + shift

    def span(self, old_start: int, old_end: int) -> slice:
        """The span of these lines in the expected text, hunks at both borders included."""
        return slice(self.new(old_start), self.new_after(old_end))


def merged_lines(segments: Sequence[WrittenSegment], original: Sequence[str]) -> list[str]:
    """Apply the segments to the original; they may not overlap.

    The result must be the expected text, which checks the segments.
    """
    spliced: list[str] = []
    shown_until = 0
    for segment in segments:
        spliced += original[shown_until : segment.old_start]
        spliced += [] if segment.style == "remove_directive" else segment.new_lines
        shown_until = segment.old_end
    return spliced + list(original[shown_until:])


def style_name(segments: Sequence[WrittenSegment], original: Sequence[str]) -> str:
    """The different styles of the segments; "whole" if one shows all of the file."""
    if len(segments) == 1 and segments[0].old_start == 0 and segments[0].old_end == len(original):
        return "whole"
    names = sorted({segment.style for segment in segments})
    return "+".join(names)
