"""Keeps the code behind a marker in the block that the segment before left open.

A segment may show the header of a block and a marker deeper than it; the next segment then stands
inside that block or closes it. Blocks are told by indentation: a line opens one if the line or the
marker after it is deeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.read.segment import Segment
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.block_bounds import BlockBounds, closes_block, columns
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.line_index import LineIndex


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
            and closes_block(next(filter(str.strip, placement.lines), "").strip())
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
        self._bounds = BlockBounds(index)
        self._symbols = symbols
        self._blocks: list[_Block] = []

    @cached_property
    def _symbol_ends(self) -> dict[int, int]:
        """Where the definition ends whose header stands on a line."""
        ends: dict[int, int] = {}
        for symbol in self._symbols:
            ends[symbol.header] = max(ends.get(symbol.header, 0), symbol.end)
        return ends

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
        opened: list[int] = []
        for row, (indent, text) in enumerate(rows):
            while opened and rows[opened[-1]][0] >= indent:
                opened.pop()
            while self._blocks and self._blocks[-1].indent >= indent:
                self._blocks.pop()
            if row + 1 < len(rows):
                is_deeper = rows[row + 1][0] > indent
            else:
                is_deeper = segment.next_indent is not None and segment.next_indent > indent
                is_deeper = is_deeper or text.endswith(BLOCK_OPENERS)
            if is_deeper and segment.has_gap_after:
                opened.append(row)
        depths = _placed_depths(rows, placement)
        for row in opened:
            indent, depth = rows[row][0], depths[row]
            is_marked = segment.next_indent is not None and segment.next_indent > indent
            block = None
            if placement is not None and depth is not None:
                block = self._try_block(indent, depth, placement.end, is_marked=is_marked)
            self._blocks.append(block or _Block(indent, is_marked=is_marked))
        outer = segment.outer_indent
        while outer is not None and self._blocks and self._blocks[-1].indent >= outer:
            self._blocks.pop()

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

    def _try_block(self, indent: int, depth: int, border: int, *, is_marked: bool) -> _Block | None:
        """The block by `depth` columns of the original that is still open at `border`."""
        header = self._bounds.header_of(border, depth)
        if header is None:
            return None
        bounds = self._end_of(header, border)
        if bounds is None:
            return None
        low = max(border, self._bounds.body_of(header))
        return _Block(indent, low, max(low, bounds[0]), bounds[1], is_marked)

    def _end_of(self, header: int, border: int) -> tuple[int, int | None] | None:
        """As `BlockBounds.end_of`, but of a definition as the parser says, if it goes on there."""
        end = self._symbol_ends.get(header, 0)
        if end < border:
            return self._bounds.end_of(header)
        is_closed = end > border and self._bounds.is_closed_by(header, end - 1)
        return (end - 1, end - 1) if is_closed else (end, None)


def is_cut(segment: Segment) -> bool:
    """Whether the marker after a segment stands for the rest of the block of its last line."""
    rows = _filled_rows(segment)
    return bool(rows) and segment.next_indent is not None and segment.next_indent > rows[-1][0]


def _filled_rows(segment: Segment) -> list[tuple[int, str]]:
    """Columns and text of the lines with text, instruction comments aside."""
    return [
        (columns(line.text), line.text.strip())
        for line in segment.lines
        if line.text.strip() and not line.is_optional
    ]


def _placed_depths(
    rows: Sequence[tuple[int, str]], placement: Placement | None
) -> list[int | None]:
    """The columns of the rows where `placement` writes them; None for one that it does not."""
    lines = iter(placement.lines if placement is not None else ())
    depths: list[int | None] = []
    for _, text in rows:
        line = next((line for line in lines if line.strip() == text), None)
        depths.append(None if line is None else columns(line))
    return depths
