"""Sources that a grammar must not see: it would crash, or take too much memory or time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

MAX_OPEN_ANGLES = 2000
# Minified code: a megabyte of it takes 100 MB as a tree, and an edit by lines gains nothing.
MAX_LINE_BYTES = 100_000
_ANGLE_LANGUAGES = frozenset({"typescript", "tsx", "cpp"})
_HOSTILE: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        # Its scanner writes past a buffer with 250 blocks open; two can begin at a column.
        "yaml": re.compile(rb"(?m)^[ \t?:-]{100}"),
        # What a run of these signs opens is looked for anew at each of them.
        "swift": re.compile(rb"#{1000}"),
        "scala": re.compile(rb"`{1000}"),
    }
)


def is_hostile(source: bytes, language: str) -> bool:
    """Whether a parser of `language` must not see `source`; text rules do instead."""
    if len(source) > MAX_LINE_BYTES and max(map(len, source.split(b"\n"))) > MAX_LINE_BYTES:
        return True
    pattern = _HOSTILE.get(language)
    if pattern is not None and pattern.search(source):
        return True
    # Open type arguments are copied one by one when the text ends: quadratic time and memory.
    return (
        language in _ANGLE_LANGUAGES and source.count(b"<") > source.count(b">") + MAX_OPEN_ANGLES
    )
