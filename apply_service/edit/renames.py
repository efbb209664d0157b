"""Names that an update gives to what has another name in the original.

Where a changed line is an old one but for one word, which is new to the file, while the update does
not show the old word any more, it renames. A line that defines or assigns the name tells nothing:
new definitions resemble those beside them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from apply_service.edit.definition_names import bound_name

_TOKEN = re.compile(r"[^\W\d]\w*|\d+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*")
MAX_NEW_LINES = 400
MAX_OLD_LINES = 2_000
# Pairs of lines that are compared in all, and tokens of one line.
MAX_COMPARED = 100_000
MAX_TOKENS = 80
MIN_SHARED_TOKENS = 4


def find_renames(new_lines: Sequence[str], old_lines: Sequence[str]) -> Mapping[str, str]:
    """The old name for each new one that an update gives; all lines are stripped."""
    old_words = {word for line in old_lines for word in _NAME.findall(line)}
    known = set(old_lines)
    suspects = []
    shown: set[str] = set()
    for line in islice(dict.fromkeys(new_lines), MAX_NEW_LINES):
        words = set(_NAME.findall(line))
        shown |= words
        new_words = [] if line in known else list(words - old_words)
        if len(new_words) == 1 and bound_name(line) != new_words[0]:
            suspects.append((_TOKEN.findall(line), new_words[0]))
    if not suspects:
        return {}
    by_size: dict[int, list[list[str]]] = {}
    for line in dict.fromkeys(old_lines):
        tokens = _TOKEN.findall(line[: MAX_TOKENS * 8])
        if MIN_SHARED_TOKENS <= len(tokens) <= MAX_TOKENS:
            by_size.setdefault(len(tokens), []).append(tokens)
    renames: dict[str, str] = {}
    num_compared = 0
    for tokens, name in suspects:
        for old in by_size.get(len(tokens), [])[:MAX_OLD_LINES]:
            num_compared += 1
            if num_compared > MAX_COMPARED:
                return renames
            former = _former(tokens, old, name)
            if former is not None and former not in shown:
                renames.setdefault(name, former)
    return renames


def _former(new: Sequence[str], old: Sequence[str], name: str) -> str | None:
    """The word that stands in `old` wherever `new` has `name`, if all else is equal."""
    former = None
    for token, other in zip(new, old, strict=True):
        if token == name:
            if former not in (None, other):
                return None
            former = other
        elif token != other:
            return None
    return former if former is not None and _NAME.fullmatch(former) else None
