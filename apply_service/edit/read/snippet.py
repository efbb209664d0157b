"""Reads an update: finds out its format, then its segments.

SnippetError ← EmptySnippetError, NoMarkerError, NothingToKeepError, MalformedSnippetError,
               UnsupportedOperationError
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from apply_service.edit.read.block_format import BlockReader
from apply_service.edit.read.diff_format import DiffReader
from apply_service.edit.read.fences import fenced_parts
from apply_service.edit.read.lazy_format import LazyReader
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.patch_format import PatchReader
from apply_service.edit.read.plain_format import read_plain
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet_error import (
    EmptySnippetError,
    MalformedSnippetError,
    NoMarkerError,
    NothingToKeepError,
    SnippetError,
    UnsupportedOperationError,
)
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import SyntaxTree
from apply_service.edit.text.words import counted

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
    tree: SyntaxTree | None = None,
) -> Snippet:
    """Read an update of any format. Raises SnippetError.

    `tree` is the parsed original; without it the original is parsed where its syntax is needed.

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
            f"the update has {counted(len(update_lines), 'line')} and no text; send the changed"
            " lines, with a marker for each part that stays"
        )
    readers = _Readers(original, path=path, language=language, tree=tree)
    return readers.read(parts) if any(original.stripped) else readers.read_new_file(parts)


class _Readers:
    """The readers of all formats, for one original."""

    def __init__(
        self,
        original: OriginalIndex,
        *,
        path: str | None,
        language: str | None,
        tree: SyntaxTree | None,
    ) -> None:
        self._original = original
        self._tree = tree
        language = language_of(path, language, original.lines)
        self._language = language
        self._scan = MarkerScan(original, language=language)
        self._lazy = LazyReader(original, self._scan)
        self._blocks = BlockReader(original, self._lazy, self._scan, path=path)
        self._patches = PatchReader(original, self._lazy, self._scan, path=path)
        self._diffs = DiffReader(original, self._lazy, self._scan, path=path, language=language)

    def read(self, parts: Sequence[Sequence[SegmentLine]]) -> Snippet:
        """Read an update of a file that has text."""
        lines = [line for part in parts for line in part]
        snippet = self._read_explicit(parts, lines)
        if snippet is not None:
            return snippet
        if len(parts) > 1 or self._lazy.has_marker_lines(parts):
            return self._lazy.read(parts)
        if any(self._scan.has_inline_marker(line.text) for line in lines):
            return _with_outer_gaps(self._lazy.read(parts))
        shown = self._lazy.with_optional(Segment(lines=tuple(lines))).lines
        return read_plain(shown, self._original, language=self._language, tree=self._tree)

    def read_new_file(self, parts: Sequence[Sequence[SegmentLine]]) -> Snippet:
        """Read the update as the whole file, when there is no original."""
        lines = [line for part in parts for line in part]
        snippet = self._read_explicit(parts, lines)
        if snippet is not None:
            if any(line.strip() for segment in snippet.segments for line in segment.old or ()):
                raise NothingToKeepError(
                    "the update has old lines, but the original is empty; send the original, or"
                    " only new lines"
                )
            lines = [line for segment in snippet.segments for line in segment.lines]
        for line in lines:
            if self._scan.is_marker(line.text) or self._scan.has_inline_marker(line.text):
                raise NothingToKeepError(
                    f"line {line.number} of the update is a marker, but the original is empty;"
                    " send the original, or the whole new file"
                )
        segment = Segment(lines=tuple(lines), has_gap_before=False, has_gap_after=False)
        return Snippet(format="whole", segments=(segment,))

    def _read_explicit(
        self, parts: Sequence[Sequence[SegmentLine]], lines: Sequence[SegmentLine]
    ) -> Snippet | None:
        """Read a format that names the lines it replaces; None if the update has no such format."""
        if self._blocks.has_blocks(lines):
            return self._blocks.read(lines)
        if self._patches.is_patch(lines):
            return self._patches.read(lines)
        return self._diffs.read(parts) if self._diffs.is_diff(lines) else None


def _with_outer_gaps(snippet: Snippet) -> Snippet:
    """Add outer gaps, because markers inside lines say nothing about the update's borders."""
    if not snippet.segments:
        return snippet
    first, *others = snippet.segments
    segments = [replace(first, has_gap_before=True), *others]
    segments[-1] = replace(segments[-1], has_gap_after=True)
    return replace(snippet, segments=tuple(segments))
