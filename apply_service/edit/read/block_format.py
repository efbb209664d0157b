"""SEARCH/REPLACE blocks: old lines, a divider, the lines that replace them.

<<<<<<< SEARCH      ------- SEARCH      <<<<<<< ORIGINAL
old                 old                 old
=======             =======             =======
new                 new                 new
>>>>>>> REPLACE     +++++++ REPLACE     >>>>>>> UPDATED
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from apply_service.edit.read.fences import check_file_name, is_fence, is_path_line, is_sentence
from apply_service.edit.read.lazy_format import LazyReader
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet_error import MalformedSnippetError
from apply_service.edit.text.alignment import matching_blocks

# Beyond these it is not looked up which of a block's dividers is the one.
MAX_DIVIDERS = 20

_START = re.compile(r"\s*(?:<{5,9}|-{5,9})\s*(?:SEARCH|ORIGINAL)\s*+>?\s*+")
_DIVIDER = re.compile(r"\s*={5,9}\s*")
_END = re.compile(r"\s*(?:>{5,9}|\+{5,9})\s*(?:REPLACE|UPDATED?)\s*")
# One dialect writes where the block begins, and a rule, before the old lines.
_START_LINE = re.compile(r"\s*:(?P<name>start_line|end_line):\s*(?P<number>\d{1,9})\s*")
_RULE = re.compile(r"-{7}\s*")


@dataclass(frozen=True, slots=True)
class SearchReplaceBlock:
    """The lines of one block; `number` is the line of the update where it begins."""

    number: int
    inner: tuple[SegmentLine, ...]


class BlockReader:
    """Recognises and reads SEARCH/REPLACE blocks for one original."""

    def __init__(
        self,
        original: OriginalIndex,
        lazy: LazyReader,
        scan: MarkerScan,
        *,
        path: str | None = None,
    ) -> None:
        self._original = original
        self._lazy = lazy
        self._scan = scan
        self._path = path

    def has_blocks(self, lines: Sequence[SegmentLine]) -> bool:
        """True if a line begins a block and the original does not contain that line."""
        return any(
            _START.fullmatch(line.text) is not None and not self._original.has(line.text)
            for line in lines
        )

    def read(self, lines: Sequence[SegmentLine]) -> Snippet:
        """Read each block as a segment, in any order.

        A block with markers on both sides becomes one segment for each part between them. Raises
        MalformedSnippetError, UnsupportedOperationError.
        """
        segments: list[Segment] = []
        for block in self._blocks(lines):
            segments.extend(map(self._lazy.with_optional, self._segments(block)))
        return Snippet(format="search_replace", segments=tuple(segments))

    def _blocks(self, lines: Sequence[SegmentLine]) -> list[SearchReplaceBlock]:
        blocks: list[SearchReplaceBlock] = []
        start: int | None = None
        for place, line in enumerate(lines):
            if _START.fullmatch(line.text):
                if start is not None:
                    raise _unfinished(lines[start])
                start = place
            elif start is None:
                self._check_outside(line)
            elif _END.fullmatch(line.text):
                blocks.append(
                    SearchReplaceBlock(lines[start].number, tuple(lines[start + 1 : place]))
                )
                start = None
        if start is not None:
            raise _unfinished(lines[start])
        return blocks

    def _check_outside(self, line: SegmentLine) -> None:
        """Check that only paths, fences, markers and sentences stand outside blocks.

        So nothing gets lost.
        """
        text = line.text.strip()
        if not text or is_fence(line.text) or self._scan.is_marker(line.text):
            return
        if is_sentence(line.text, ends=(":", ".", "!", "?"), min_spaces=1):
            return
        if not is_path_line(text):
            raise MalformedSnippetError(
                f"line {line.number} of the update (`{text[:80]}`) stands outside the"
                " SEARCH/REPLACE blocks and would be lost; put it into a block, or leave it out"
            )
        check_file_name(text, self._path, number=line.number)

    def _segments(self, block: SearchReplaceBlock) -> list[Segment]:
        inner, hint = _without_position(block.inner)
        old, new = self._sides(block, inner)
        old_parts, new_parts = self._parts(old), self._parts(new)
        if len(old_parts) != len(new_parts):
            raise MalformedSnippetError(
                f"the block on line {block.number} of the update has {len(old_parts) - 1} markers"
                f" before its divider and {len(new_parts) - 1} after it, and both sides stand for"
                " the same lines; write the same markers on both sides, or none"
            )
        if not any(line.text.strip() for line in old) and any(self._original.stripped):
            raise MalformedSnippetError(
                f"the block on line {block.number} of the update has an empty SEARCH, and only a"
                " new file may have one; put the lines next to the change into SEARCH and REPLACE"
            )
        pairs = zip(old_parts, new_parts, strict=True)
        segments = [_segment(old_part, new_part) for old_part, new_part in pairs]
        filled = [segment for segment in segments if segment.lines or segment.old]
        return [replace(filled[0], old_line_hint=hint), *filled[1:]] if filled else []

    def _sides(
        self, block: SearchReplaceBlock, inner: Sequence[SegmentLine]
    ) -> tuple[Sequence[SegmentLine], Sequence[SegmentLine]]:
        """Old and new lines, cut at the last divider that follows lines of the original."""
        dividers = [place for place, line in enumerate(inner) if _DIVIDER.fullmatch(line.text)]
        if 1 < len(dividers) <= MAX_DIVIDERS:
            known = [place for place in dividers if self._has_run(inner[:place])]
            dividers = known[-1:] or dividers
        if len(dividers) != 1:
            raise MalformedSnippetError(
                f"the block on line {block.number} of the update has {len(dividers)} dividers"
                " (`=======`), and a block has 1; put one between the old and the new lines"
            )
        return inner[: dividers[0]], inner[dividers[0] + 1 :]

    def _has_run(self, lines: Sequence[SegmentLine]) -> bool:
        return self._original.has_run([line.text for line in lines])

    def _parts(self, lines: Sequence[SegmentLine]) -> list[list[SegmentLine]]:
        parts: list[list[SegmentLine]] = [[]]
        for line in lines:
            if self._scan.is_marker(line.text):
                parts.append([])
            else:
                parts[-1].append(line)
        return parts


def _segment(old: Sequence[SegmentLine], new: Sequence[SegmentLine]) -> Segment:
    old_texts, new_texts = [line.text for line in old], [line.text for line in new]
    kept = {
        block.new_start + offset
        for block in matching_blocks(old_texts, new_texts)
        for offset in range(block.length)
    }
    return Segment(
        lines=tuple(
            replace(line, role="context" if place in kept else "new")
            for place, line in enumerate(new)
        ),
        old=tuple(old_texts),
    )


def _without_position(
    lines: Sequence[SegmentLine],
) -> tuple[Sequence[SegmentLine], int | None]:
    """The lines of a block without the position above them, and the line number in it."""
    hint: int | None = None
    place = 0
    while place < len(lines) and (match := _START_LINE.fullmatch(lines[place].text)) is not None:
        hint = int(match["number"]) if match["name"] == "start_line" else hint
        place += 1
    if place and place < len(lines) and _RULE.fullmatch(lines[place].text):
        place += 1
    return lines[place:], hint


def _unfinished(start: SegmentLine) -> MalformedSnippetError:
    return MalformedSnippetError(
        f"the block on line {start.number} of the update (`{start.text.strip()}`) has no end;"
        " close it with `>>>>>>> REPLACE` (or `+++++++ REPLACE`) after its new lines"
    )
