"""Texts of others in the log and in messages: what may quote an edit, and how names are shown."""

from __future__ import annotations

import logging

# What is written to it has pieces of users' files; it is silent unless a setting opens it.
TEXT_LOGGER = logging.getLogger("apply_service.text")

# Extra of a log line whose error came out of somebody's edit: its message may quote the edit.
PRIVATE_ERROR = {"is_private": True}

MAX_SHOWN_CHARACTERS = 200


def shown(text: str) -> str:
    """A name or message of somebody else on one line: at most 200 characters, all printable."""
    pieces = (one if one.isprintable() else _escaped(one) for one in text[:MAX_SHOWN_CHARACTERS])
    line = "".join(pieces)
    if len(line) <= MAX_SHOWN_CHARACTERS and len(text) <= MAX_SHOWN_CHARACTERS:
        return line
    return line[: MAX_SHOWN_CHARACTERS - 1] + "…"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
