"""The content of an update in any format: segments, and names to remove."""

from __future__ import annotations

from typing import Literal

import msgspec

SnippetFormat = Literal["lazy", "fragment", "whole", "diff", "search_replace", "patch"]
# Formats that name the lines they replace.
EXPLICIT_FORMATS: frozenset[SnippetFormat] = frozenset({"diff", "search_replace", "patch"})
LineRole = Literal["unknown", "context", "new"]


class SegmentLine(msgspec.Struct, frozen=True, gc=False):
    """A line that belongs to the result.

    `number` is its place in the update, from 1. A lazy update does not say which of its lines are
    new, so their role is "unknown". An optional line is an instruction comment ("// Add a method
    to close the file"): a result may contain it or not.
    """

    text: str
    number: int
    role: LineRole = "unknown"
    is_optional: bool = False
    has_inline_marker: bool = False


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive lines of the result that replace some lines of the original.

    `old` are the replaced lines, if the format names them (context and removed lines of a hunk,
    the SEARCH side of a block) or the lines of a fragment tell; None leaves them to be found.
    Without a gap before, the segment begins where the previous one ends, or at the start of the
    file; likewise after. `next_indent` are the columns of white space before the marker that
    follows, if one does, and `outer_indent` those before a further marker directly behind that
    one, if they are fewer. `old_line_hint` is the line number of a hunk header, from 1; agents
    often get it wrong. `is_below_hint` if it is that of a heading above the lines.
    """

    lines: tuple[SegmentLine, ...]
    old: tuple[str, ...] | None = None
    has_gap_before: bool = True
    has_gap_after: bool = True
    old_line_hint: int | None = None
    is_below_hint: bool = False
    next_indent: int | None = None
    outer_indent: int | None = None

    @property
    def texts(self) -> list[str]:
        """The lines as text, optional ones included."""
        return [line.text for line in self.lines]


class Removal(msgspec.Struct, frozen=True, gc=False):
    """A directive that names something of the original to remove ("# remove parse_header").

    It stands in the update at line `number`, before segment `before_segment` (or after the last).
    """

    name: str
    number: int
    before_segment: int


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """An update in one form for all formats."""

    format: SnippetFormat
    segments: tuple[Segment, ...]
    removals: tuple[Removal, ...] = ()
