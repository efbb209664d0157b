"""Whether a file was written by people, judged by its text alone."""

from __future__ import annotations

import re

MAX_LINE_LENGTH = 300
_GENERATED = re.compile(
    r"generated (by|from|file|using)|auto-?generated|@generated|do not (edit|modify)"
    r"|sourceMappingURL|__esModule|__importDefault|swiftlint:disable all",
    re.IGNORECASE,
)


def is_written_by_people(text: str) -> bool:
    """Whether a file looks neither generated nor minified."""
    lines = text.split("\n")
    if max(map(len, lines)) > MAX_LINE_LENGTH:
        return False
    return not _GENERATED.search("\n".join([*lines[:20], *lines[-3:]]))
