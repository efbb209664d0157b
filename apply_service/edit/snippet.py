"""Reads an update: first which format it is written in, then its segments.

SnippetError ← EmptySnippetError, NoMarkerError, NothingToKeepError, MalformedSnippetError,
               UnsupportedOperationError
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.fences import fenced_parts
from apply_service.edit.lazy_format import LazyReader
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
    lines at the start or end of the file: agents forget the outer markers. A removal may name
    something that the original lacks, if it stands alone between two markers.
    """
    original = OriginalIndex(original_lines)
    parts = [
        [SegmentLine(update_lines[place], place + 1) for place in range(start, end)]
        for start, end in fenced_parts(update_lines, original.counts, path=path, language=language)
    ]
    if not any(line.text.strip() for part in parts for line in part):
        raise EmptySnippetError(
            f"the update has {len(update_lines)} lines and none of them is text; send the changed"
            " lines, with markers for what stays"
        )
    lines = [line for part in parts for line in part]
    reader = LazyReader(original)
    if not any(original.stripped):
        return _read_new_file(lines, reader)
    if len(parts) > 1 or any(reader.is_marker(line.text) for line in lines):
        return reader.read(parts)
    return read_plain(lines, original)


def _read_new_file(lines: list[SegmentLine], reader: LazyReader) -> Snippet:
    """The update is the whole file when there is no original."""
    for line in lines:
        if reader.is_lazy([line]):
            raise NothingToKeepError(
                f"line {line.number} of the update is a marker, but the original is empty, so it"
                " stands for nothing; send the original, or an update that is the whole new file"
            )
    return read_plain(lines, OriginalIndex(()))
