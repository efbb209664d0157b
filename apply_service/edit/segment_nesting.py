"""Markers inside blocks: what follows one stands in the block that the segment before left open.

A segment may show the header of a block and a marker deeper than it; the next segment then stands
inside that block or closes it. Blocks are told by indentation: a line opens one if the line or the
marker after it is deeper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apply_service.edit.line_index import OPENERS, LineIndex
from apply_service.edit.placement import Placement
from apply_service.edit.segment import Segment
from apply_service.edit.symbol import Symbol

_CLOSERS = ("}", ")", "]", "</")
_CLOSING_WORDS = frozenset({"end", "end;", "end,", "end)", "fi", "done", "esac"})
# Lines of the original that are searched for the header of a block.
_MAX_SEARCHED = 2_000


@dataclass(frozen=True, slots=True)
class Room:
    """Where a segment may stand: inside lines `[low, high)` of the original.

    It shows the lines `closers`, which end blocks; with `closes` the first of them is its first
    line.
    """

    low: int
    high: int
    closers: tuple[int, ...] = ()
    closes: bool = False

    def is_open(self, num_lines: int) -> bool:
        """Whether a segment may stand anywhere in a file of so many lines."""
        return not self.low and self.high == num_lines and not self.closers

    def admits(self, placement: Placement) -> bool:
        """Whether a placement keeps to the room."""
        if not self.low <= placement.start <= placement.end <= self.high:
            return False
        if not all(placement.start <= line < placement.end for line in self.closers):
            return False
        return not self.closes or (
            placement.start == self.low
            and closes_block(next(filter(str.strip, placement.lines), ""))
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """An open block of the update by the columns of its header.

    In the original the rest of it are lines `[low, high)`; `closer` is the line that ends it, if
    one does. Without `low` the block was not found there. `is_marked`: a marker stands inside.
    """

    indent: int
    low: int | None = None
    high: int = 0
    closer: int | None = None
    is_marked: bool = False


class SegmentNesting:
    """Follows the blocks that stay open from segment to segment."""

    def __init__(self, index: LineIndex, symbols: Sequence[Symbol]) -> None:
        self._index = index
        self._symbol_ends = {symbol.header: symbol.end for symbol in symbols}
        self._blocks: list[_Block] = []

    def enter(self, segment: Segment) -> Room | None:
        """Where `segment`, the next one, has to stand; None if no open block says it."""
        rows = _filled_rows(segment)
        if not rows:
            return None
        indent, text = rows[0]
        closer = None
        while self._blocks and indent <= self._blocks[-1].indent:
            block = self._blocks.pop()
            if indent == block.indent and closes_block(text):
                closer = block.closer
                break
        room = self._inner_room(rows, 0 if closer is None else closer)
        if closer is None or not room.low <= closer < room.high:
            return None if room.is_open(len(self._index)) else room
        return replace(room, low=closer, closers=(closer, *room.closers), closes=True)

    def leave(self, segment: Segment, placement: Placement | None) -> None:
        """Take in the blocks that `segment` leaves open; `placement` is where it stands."""
        rows = _filled_rows(segment)
        opened: list[tuple[int, str]] = []
        for (indent, text), (below, _) in zip(rows, [*rows[1:], (None, "")], strict=True):
            while opened and opened[-1][0] >= indent:
                opened.pop()
            while self._blocks and self._blocks[-1].indent >= indent:
                self._blocks.pop()
            if below is None:
                is_deeper = segment.next_indent is not None and segment.next_indent > indent
                is_deeper = is_deeper or text.endswith(OPENERS)
            else:
                is_deeper = below > indent
            if is_deeper and segment.has_gap_after:
                opened.append((indent, text))
        for indent, text in opened:
            is_marked = segment.next_indent is not None and segment.next_indent > indent
            self._blocks.append(self._block(indent, text, placement, is_marked=is_marked))

    def _inner_room(self, rows: Sequence[tuple[int, str]], low: int) -> Room:
        """The room in the open blocks, some of which the rows may leave again."""
        closers: list[int] = []
        is_inside = False
        for block in reversed(self._blocks):
            if not block.is_marked or block.low is None:
                continue
            low = low if is_inside else max(low, block.low)
            is_inside = True
            ending = next((text for indent, text in rows if indent <= block.indent), None)
            if ending is None:
                return Room(low, block.high, tuple(closers))
            if block.closer is not None and closes_block(ending):
                closers.append(block.closer)
        return Room(low, len(self._index), tuple(closers))

    def _block(
        self, indent: int, text: str, placement: Placement | None, *, is_marked: bool
    ) -> _Block:
        unknown = _Block(indent, is_marked=is_marked)
        if placement is None:
            return unknown
        depths = [columns(line) for line in placement.lines if line.strip() == text]
        header = self._header(placement, depths[-1]) if depths else None
        if header is None:
            return unknown
        end, closer = self._block_end(header, placement.end, depths[-1])
        if end is None:
            return unknown
        return _Block(indent, placement.end, end, closer, is_marked)

    def _header(self, placement: Placement, depth: int) -> int | None:
        """The line of the original that opens the block by `depth` columns that is still open."""
        low = max(placement.start, placement.end - _MAX_SEARCHED)
        for at in range(placement.end - 1, low - 1, -1):
            if self._index.stripped[at]:
                found = columns(self._index.lines[at])
                if found <= depth:
                    return at if found == depth else None
        return None

    def _block_end(self, header: int, start: int, depth: int) -> tuple[int | None, int | None]:
        """Where the block of `header` ends behind `start`, and the line that closes it."""
        known = self._symbol_ends.get(header)
        if known is not None and known >= start:
            last = known - 1
            if last >= start and closes_block(self._index.stripped[last]):
                return last, last
            return known, None
        is_bracket = self._index.stripped[header].endswith(("{", "(", "["))
        end = start
        for at in self._filled_from(start):
            if columns(self._index.lines[at]) > depth:
                end = at + 1
            elif columns(self._index.lines[at]) == depth and closes_block(self._index.stripped[at]):
                return at, at
            elif not is_bracket:
                return end, None
        return (None, None) if is_bracket else (end, None)

    def _filled_from(self, start: int) -> Iterator[int]:
        return (at for at in range(start, len(self._index)) if self._index.stripped[at])


def is_cut(segment: Segment) -> bool:
    """Whether the marker after a segment stands for the rest of the block of its last line."""
    rows = _filled_rows(segment)
    return bool(rows) and segment.next_indent is not None and segment.next_indent > rows[-1][0]


def closes_block(text: str) -> bool:
    """Whether a stripped line ends a block: a bracket, `end` or a closing tag."""
    text = text.strip()
    return text.startswith(_CLOSERS) or text in _CLOSING_WORDS


def columns(line: str) -> int:
    """The width of the white space before a line; a tab reaches to the next multiple of eight."""
    shown = line.expandtabs()
    return len(shown) - len(shown.lstrip())


def _filled_rows(segment: Segment) -> list[tuple[int, str]]:
    """Columns and text of the lines with text, instruction comments aside."""
    return [
        (columns(line.text), line.text.strip())
        for line in segment.lines
        if line.text.strip() and not line.is_optional
    ]
