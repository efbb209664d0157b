"""Finds where the blocks of an original begin and end, judging by its indentation."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

from apply_service.edit.text.brackets import CLOSING_BRACKETS, OPENING_BRACKETS
from apply_service.edit.text.line_index import LineIndex

_CLOSERS_OR_TAG = (*CLOSING_BRACKETS, "</")
_CLOSING_WORDS = frozenset({"end", "end;", "end,", "end)", "fi", "done", "esac"})


class BlockBounds:
    """The blocks of one original; a question takes about as many steps as blocks are nested."""

    def __init__(self, index: LineIndex) -> None:
        self._index = index

    def header_of(self, border: int, depth: int) -> int | None:
        """The header, indented by `depth` columns, of the block that continues at `border`.

        None if there is no such block.
        """
        place = self._filled_above[border]
        while place >= 0 and self.columns[place] > depth:
            place = self._shallower_above[place]
        return place if place >= 0 and self.columns[place] == depth else None

    def body_of(self, header: int) -> int:
        """The first line inside a block; the opening bracket may have a line of its own."""
        below = self._no_deeper_below[header]
        is_alone = below < len(self._index) and self._index.stripped[below] in OPENING_BRACKETS
        is_alone = is_alone and self._filled_above[below] == header
        if is_alone and self.columns[below] == self.columns[header]:
            return below + 1
        return header + 1

    def end_of(self, header: int) -> tuple[int, int | None] | None:
        """The end of the block of `header`, and the line that closes it, if one does.

        None for a bracket that nothing closes.
        """
        opener = self.body_of(header) - 1
        below = self._no_deeper_below[opener]
        if self._index.stripped[opener].endswith(OPENING_BRACKETS):
            closers = self._closers.get(self.columns[header], [])
            rank = bisect_left(closers, below)
            return (closers[rank], closers[rank]) if rank < len(closers) else None
        if self.is_closed_by(header, below):
            return below, below
        return self._filled_above[below] + 1, None

    def is_closed_by(self, header: int, line: int) -> bool:
        """True if a line is indented as `header` is and ends a block."""
        is_level = line < len(self._index) and self.columns[line] == self.columns[header]
        return is_level and closes_block(self._index.stripped[line])

    @cached_property
    def columns(self) -> list[int]:
        """The width of the white space before each line."""
        return [columns(line) for line in self._index.lines]

    @cached_property
    def _filled_above(self) -> list[int]:
        """For each border the last line with text above it, or -1."""
        places = [-1]
        for place, text in enumerate(self._index.stripped):
            places.append(place if text else places[-1])
        return places

    @cached_property
    def _shallower_above(self) -> list[int]:
        """For each line with text the last one above it that is less deep, or -1."""
        found = [-1] * len(self._index)
        around: list[int] = []
        for place, text in enumerate(self._index.stripped):
            if text:
                while around and self.columns[around[-1]] >= self.columns[place]:
                    around.pop()
                found[place] = around[-1] if around else -1
                around.append(place)
        return found

    @cached_property
    def _no_deeper_below(self) -> list[int]:
        """For each line with text the next one below it that is not deeper, or the file's end."""
        found = [len(self._index)] * len(self._index)
        waiting: list[int] = []
        for place, text in enumerate(self._index.stripped):
            if text:
                while waiting and self.columns[waiting[-1]] >= self.columns[place]:
                    found[waiting.pop()] = place
                waiting.append(place)
        return found

    @cached_property
    def _closers(self) -> dict[int, list[int]]:
        """The lines that end blocks, by their columns."""
        closers: dict[int, list[int]] = {}
        for place, text in enumerate(self._index.stripped):
            if closes_block(text):
                closers.setdefault(self.columns[place], []).append(place)
        return closers


def closes_block(text: str) -> bool:
    """True if a stripped line ends a block: a bracket, `end` or a closing tag."""
    return text.startswith(_CLOSERS_OR_TAG) or text in _CLOSING_WORDS


def columns(line: str) -> int:
    """The width of the white space before a line; a tab reaches to the next multiple of eight."""
    shown = line.expandtabs()
    return len(shown) - len(shown.lstrip())
