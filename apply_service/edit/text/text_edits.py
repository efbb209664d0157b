"""A change as edits that an editor applies: ranges of the old text, each with its new text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from apply_service.edit.text.alignment import bounded_hunks

# A line ends where the Language Server Protocol says so: at "\n", "\r\n" or a lone "\r".
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LINE_ENDS = ("\n", "\r")

# What a position counts: bytes, UTF-16 code units, or Unicode code points.
PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
_UNIT_BYTES: dict[PositionEncoding, int] = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two characters: line from 0, and units of an encoding from its start."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement: `text` takes the place of the old text between `start` and `end`."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class OffsetEdit:
    """The same with units of an encoding from the start of the text."""

    start: int
    end: int
    text: str


def text_edits(
    old_text: str, new_text: str, *, encoding: PositionEncoding = "utf-16"
) -> list[TextEdit]:
    """The edits that turn one text into the other, in order; none when they are equal.

    All positions are places in the old text, so the edits are to be applied at once. They take
    whole lines, never overlap or touch, and are the hunks of `unified_diff` without context. No
    range begins or ends between the two characters of "\\r\\n": no position can name that place.
    """
    old, new = _LINE.findall(old_text), _LINE.findall(new_text)
    return [
        TextEdit(
            start=_border(old, hunk.old_start, encoding),
            end=_border(old, hunk.old_end, encoding),
            text="".join(new[hunk.new_start : hunk.new_end]),
        )
        for hunk in bounded_hunks(old, new)
    ]


def offset_edits(
    old_text: str, new_text: str, *, encoding: PositionEncoding = "utf-16"
) -> list[OffsetEdit]:
    """The same edits as `text_edits`, by offsets."""
    lines = _LINE.findall(old_text)
    starts = [*accumulate((_num_units(line, encoding) for line in lines), initial=0)]

    def offset(position: Position) -> int:
        return starts[min(position.line, len(lines))] + position.character

    return [
        OffsetEdit(offset(edit.start), offset(edit.end), edit.text)
        for edit in text_edits(old_text, new_text, encoding=encoding)
    ]


def _num_units(text: str, encoding: PositionEncoding) -> int:
    if encoding == "utf-32":
        return len(text)
    name = "utf-8" if encoding == "utf-8" else "utf-16-le"
    return len(text.encode(name, "surrogatepass")) // _UNIT_BYTES[encoding]


def _border(lines: Sequence[str], number: int, encoding: PositionEncoding) -> Position:
    """The start of line `number`; the end of the text if there is no such line."""
    if number < len(lines) or not lines or lines[-1].endswith(_LINE_ENDS):
        return Position(number, 0)
    return Position(number - 1, _num_units(lines[-1], encoding))
