"""Sources on which a grammar is known to crash or to hang where no limit on time can stop it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

MAX_OPEN_ANGLES = 2000
_ANGLE_LANGUAGES = frozenset({"typescript", "tsx", "cpp"})
_HOSTILE: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        # Its scanner writes past a buffer with 250 blocks open; two can begin at a column.
        "yaml": re.compile(rb"(?m)^[ \t?:-]{100}"),
        # The delimiter of a raw string is looked for anew at each of its signs.
        "swift": re.compile(rb"#{1000}"),
    }
)


def is_hostile(source: bytes, language: str) -> bool:
    """Whether a parser of `language` must not see `source`; text rules do instead."""
    pattern = _HOSTILE.get(language)
    if pattern is not None and pattern.search(source):
        return True
    # Open type arguments are copied one by one when the text ends: quadratic time and memory.
    return (
        language in _ANGLE_LANGUAGES and source.count(b"<") > source.count(b">") + MAX_OPEN_ANGLES
    )
