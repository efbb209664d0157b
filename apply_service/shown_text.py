"""Texts of others, safe to show: a terminal obeys control characters, a line may be endless."""

from __future__ import annotations

import re
import sys

MAX_SHOWN_CHARACTERS = 200

# Controls, except tabs and ends of lines; marks that reorder what is read; halves of pairs.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\r(?!\n|\Z)"
)


def shown(text: str) -> str:
    """A text of one or more lines, with its control characters as escapes such as `\\x1b`."""
    return _UNSAFE.sub(lambda found: _escaped(found[0]), text)


def shown_line(text: object) -> str:
    """A name or a line in printable characters, without the middle of a long one."""
    short = shortened(str(text))
    return shortened("".join(one if one.isprintable() else _escaped(one) for one in short))


def shortened(text: str, max_characters: int = MAX_SHOWN_CHARACTERS) -> str:
    """A text of at most so many characters, with `…` for those in its middle."""
    if len(text) <= max_characters:
        return text
    half = max_characters // 2
    return f"{text[:half]}…{text[half + 1 - max_characters :]}"


def say(text: object, *, end: str = "\n") -> None:
    """Print a text to stderr, with its control characters as escapes."""
    print(shown(str(text)), end=end, file=sys.stderr, flush=True)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
