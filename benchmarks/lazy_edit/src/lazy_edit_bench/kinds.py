"""Which of eight kinds an edit is, told from the two texts alone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, get_args

from lazy_edit_bench.languages import is_import, syntax_of

Kind = Literal["replace", "insert", "delete", "import", "rename", "move", "wrap", "several"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_WORD = re.compile(r"\w+|\W")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines [start, end) of the original become `new`."""

    start: int
    end: int
    new: tuple[str, ...]


def hunks_of(original: list[str], result: list[str]) -> list[Hunk]:
    """What changes, as runs of lines in order, the least that `difflib` finds."""
    matcher = SequenceMatcher(None, original, result, autojunk=False)
    return [
        Hunk(a, b, tuple(result[c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


def kind_of(path: str, original: str, result: str) -> Kind:
    """The kind of the edit that makes `result` of `original`."""
    old, new = original.splitlines(), result.splitlines()
    hunks = hunks_of(old, new)
    removed = [line for hunk in hunks for line in old[hunk.start : hunk.end] if line.strip()]
    added = [line for hunk in hunks for line in hunk.new if line.strip()]
    syntax = syntax_of(path)
    if (removed or added) and all(is_import(line, syntax) for line in removed + added):
        return "import"
    if removed and Counter(removed) == Counter(added):
        return "move"
    if _is_rename(removed, added):
        return "rename"
    if _is_wrap(removed, added):
        return "wrap"
    if len(hunks) > 1:
        return "several"
    return "replace" if removed and added else "insert" if added else "delete"


def _is_rename(removed: list[str], added: list[str]) -> bool:
    """Whether one word became another on each changed line, two or more of them."""
    if len(removed) < 2 or len(removed) != len(added):
        return False
    pairs = set()
    for old, new in zip(removed, added, strict=True):
        old_words, new_words = _WORD.findall(old), _WORD.findall(new)
        if len(old_words) != len(new_words):
            return False
        pairs |= {pair for pair in zip(old_words, new_words, strict=True) if pair[0] != pair[1]}
    return len(pairs) == 1


def _is_wrap(removed: list[str], added: list[str]) -> bool:
    """Whether the same lines stand at another depth, with few lines more or fewer around them."""
    old, new = Counter(map(str.strip, removed)), Counter(map(str.strip, added))
    shared = (old & new).total()
    return shared >= 2 and shared >= 0.6 * max(old.total(), new.total())
