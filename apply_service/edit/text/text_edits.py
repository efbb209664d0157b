"""A change as edits that an editor applies: ranges of the old text, each with its new text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.edit.text.alignment import bounded_hunks

# A line ends where the Language Server Protocol says so: at "\n", "\r\n" or a lone "\r".
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LINE_ENDS = ("\n", "\r")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two characters: line from 0, and UTF-16 code units from its start."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement: `text` takes the place of the old text between `start` and `end`."""

    start: Position
    end: Position
    text: str


def text_edits(old_text: str, new_text: str) -> list[TextEdit]:
    """The edits that turn one text into the other, in order; none when they are equal.

    All positions are places in the old text, so the edits are to be applied at once. They take
    whole lines, never overlap or touch, and are the hunks of `unified_diff` without context. No
    range begins or ends between the two characters of "\\r\\n": no position can name that place.
    """
    old, new = _LINE.findall(old_text), _LINE.findall(new_text)
    return [
        TextEdit(
            start=_border(old, hunk.old_start),
            end=_border(old, hunk.old_end),
            text="".join(new[hunk.new_start : hunk.new_end]),
        )
        for hunk in bounded_hunks(old, new)
    ]


def _border(lines: Sequence[str], number: int) -> Position:
    """The start of line `number`; the end of the text if there is no such line."""
    if number < len(lines) or not lines or lines[-1].endswith(_LINE_ENDS):
        return Position(number, 0)
    last = lines[-1].encode("utf-16-le", "surrogatepass")
    return Position(number - 1, len(last) // 2)
