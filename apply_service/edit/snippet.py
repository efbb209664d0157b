"""Reads an update: first which format it is written in, then its segments.

SnippetError ← EmptySnippetError, NoMarkerError, NothingToKeepError, MalformedSnippetError,
               UnsupportedOperationError
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.lazy_format import has_markers, read_lazy
from apply_service.edit.markers import MarkerReader, fence_span
from apply_service.edit.original_index import OriginalIndex
from apply_service.edit.plain_format import read_plain
from apply_service.edit.segment import SegmentLine, Snippet
from apply_service.edit.snippet_error import (
    EmptySnippetError,
    MalformedSnippetError,
    NoMarkerError,
    NothingToKeepError,
    SnippetError,
    UnsupportedOperationError,
)

__all__ = [
    "EmptySnippetError",
    "MalformedSnippetError",
    "NoMarkerError",
    "NothingToKeepError",
    "SnippetError",
    "UnsupportedOperationError",
    "read_snippet",
]


def read_snippet(
    update_lines: Sequence[str],
    original_lines: Sequence[str],
    *,
    path: str | None = None,
    language: str | None = None,
) -> Snippet:
    """The update in one form, whatever it was written in. Raises SnippetError.

    A border of a lazy update without a marker has no gap, unless that would lose more than a few
    lines at the start or end of the file: agents forget the outer markers.
    """
    start, end = fence_span(update_lines, path=path, language=language)
    lines = [SegmentLine(update_lines[place], place + 1) for place in range(start, end)]
    if not any(line.text.strip() for line in lines):
        raise EmptySnippetError(
            f"the update has {len(update_lines)} lines and none of them is text; send the changed"
            " lines, with markers for what stays"
        )
    original = OriginalIndex(original_lines)
    reader = MarkerReader(original_lines)
    if has_markers(lines, reader):
        return read_lazy(lines, original, reader)
    return read_plain(lines, original)
