"""The definitions of a file grouped by depth, with their starts, ends and the text between them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from apply_service.edit.syntax.definitions import BLOCKS, BLOCKS_OR_RULES
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.line_index import LineIndex, indent_of

_PLACED = BLOCKS_OR_RULES | {"section"}
# What a Python file runs as a program stands last.
_MAIN_GUARD = "__name__"


class DefinitionLevel:
    """The definitions at one depth, in order; none is inside another."""

    def __init__(self, symbols: Sequence[Symbol], index: LineIndex) -> None:
        placed = [
            symbol
            for symbol in symbols
            if symbol.kind in _PLACED and not symbol.name.startswith(_MAIN_GUARD)
        ]
        self._symbols = sorted(placed, key=lambda symbol: symbol.start)
        self._starts = [symbol.start for symbol in self._symbols]
        self._ends = sorted({symbol.end for symbol in placed})
        gaps = [
            index.blank_before(symbol.start)
            for symbol in symbols
            if symbol.start > 0
            and symbol.kind in BLOCKS
            and not opens(index, symbol.start - index.blank_before(symbol.start))
        ]
        self.usual_gap = max(set(gaps), key=gaps.count) if gaps else 1

    def starts(self, low: int, high: int, limit: int) -> tuple[list[int], list[int]]:
        """The first and the last `limit` starts in `[low, high]`, the outermost first."""
        return _both_ends(self._starts, low, high, limit)

    def ends(self, low: int, high: int, limit: int) -> tuple[list[int], list[int]]:
        """The first and the last `limit` ends in `[low, high]`, the outermost first."""
        return _both_ends(self._ends, low, high, limit)

    def around(self, border: int) -> Symbol | None:
        """The definition that contains `border` or ends there."""
        place = bisect_left(self._starts, border) - 1
        symbol = self._symbols[place] if place >= 0 else None
        return symbol if symbol is not None and border <= symbol.end else None


class DefinitionLevels:
    """All levels of a file."""

    def __init__(self, symbols: Sequence[Symbol], index: LineIndex) -> None:
        by_depth: dict[int, list[Symbol]] = {}
        for symbol in symbols:
            if symbol.kind in _PLACED:
                depth = len(indent_of(index.lines[symbol.header]))
                by_depth.setdefault(depth, []).append(symbol)
        self._levels = {depth: DefinitionLevel(found, index) for depth, found in by_depth.items()}
        self._empty = DefinitionLevel((), index)

    def at(self, depth: int) -> DefinitionLevel:
        """The definitions whose headers are indented by `depth` columns; perhaps none."""
        return self._levels.get(depth, self._empty)

    def block_end(self, border: int, depth: int) -> int:
        """The end of the innermost definition around `border` that begins left of `depth`."""
        around = [level.around(border) for at, level in self._levels.items() if at < depth]
        ends = [symbol.end for symbol in around if symbol is not None and border < symbol.end]
        return min(ends, default=0)


def opens(index: LineIndex, border: int) -> bool:
    """True if a block begins at `border`."""
    return border > 0 and index.stripped[border - 1].endswith(BLOCK_OPENERS)


def _both_ends(
    places: Sequence[int], low: int, high: int, limit: int
) -> tuple[list[int], list[int]]:
    first, last = bisect_left(places, low), bisect_right(places, high)
    return (
        list(places[first : min(last, first + limit)]),
        list(places[max(first, last - limit) : last][::-1]),
    )
