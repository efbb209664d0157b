"""Lines that end a block, and the width of the white space before a line."""

from __future__ import annotations

from apply_service.edit.text.brackets import CLOSING_BRACKETS

_CLOSERS_OR_TAG = (*CLOSING_BRACKETS, "</")
_CLOSING_WORDS = frozenset({"end", "end;", "end,", "end)", "fi", "done", "esac"})


def closes_block(text: str) -> bool:
    """True if a stripped line ends a block: a bracket, `end` or a closing tag."""
    return text.startswith(_CLOSERS_OR_TAG) or text in _CLOSING_WORDS


def columns(line: str) -> int:
    """The width of the white space before a line; a tab reaches to the next multiple of eight."""
    shown = line.expandtabs()
    return len(shown) - len(shown.lstrip())
