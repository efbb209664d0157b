"""Counts what is odd in a text, to be compared with what was odd in the original."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from rapidfuzz import fuzz

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.text.brackets import BLOCK_OPENERS, CLOSERS_OR_END

TWIN_RATIO = 75
_LEAVES = ("return", "raise ", "throw ", "continue", "break")
# What a block has once: keys, and the patterns of a `switch` or `when`.
_LABEL = re.compile(r"""("[^"]*"|'[^']*'|[\w$][\w.$\- ]*|\*|_)\s*(=>|->|:(?![:=])|=(?!=))""")
# Dots for something left out; not those before a name or a bracket, which spread a list.
_ELLIPSIS = re.compile(r"\.\.\.(?![\w$\[({])|…")
_STATEMENTS = frozenset({"else", "try", "finally", "do", "public", "private", "protected"})
_GOES_ON = ("case", "default", "else", "elif", "except", "end", "when", "//", "--", "rescue", "#")


def num_repeated(lines: Sequence[str]) -> int:
    """Lines that stand twice in a row."""
    return sum(left == right and len(left) > 3 for left, right in pairwise(lines))


def dead_lines(text: OriginalFacts) -> list[int]:
    """Filled lines that cannot be reached, as they follow a return or the like."""
    indents, lines = text.indents, text.stripped
    return [
        number + 1
        for number, line in enumerate(lines[:-1])
        if indents[number] == indents[number + 1]
        and line.startswith(_LEAVES)
        and line[-1:] not in "([{,=+&|?:\\"
        and lines[number + 1][:1] not in "})].?:&|+*/#@<-"
        and not lines[number + 1].startswith(_GOES_ON)
    ]


def num_empty_headers(text: OriginalFacts) -> int:
    """Headers of Python without a member."""
    if text.language != "python":
        return 0
    indents = [*text.indents, 0]
    return sum(
        line.endswith(":") and indents[number + 1] <= indents[number]
        for number, line in enumerate(text.stripped)
    )


def _opens(line: str) -> bool:
    is_tag = line.startswith("<") and line.endswith(">") and line[1:2].isalpha()
    return line.endswith(BLOCK_OPENERS) or (is_tag and not line.endswith("/>") and "</" not in line)


def num_shallow(text: OriginalFacts) -> int:
    """Lines behind an opened block that are no deeper."""
    indents, lines = text.indents, text.stripped
    return sum(
        _opens(line)
        and indents[number + 1] <= indents[number]
        and not lines[number + 1].startswith((*CLOSERS_OR_END, "</", "case", "default"))
        for number, line in enumerate(lines[:-1])
    )


def num_jumps(text: OriginalFacts) -> int:
    """Lines deeper than the line above, which opens no block."""
    indents, lines = text.indents, text.stripped
    return sum(
        indents[number + 1] > indents[number]
        and not _opens(line)
        and line[-1:] not in ",+-*/=&|?\\.>"
        and not lines[number + 1].startswith((".", "&", "|", "?", "+", "*"))
        for number, line in enumerate(lines[:-1])
    )


def num_empty_blocks(text: OriginalFacts) -> int:
    """Blocks that are closed where they are opened, on two lines."""
    return sum(
        above.endswith(("{", "(", "[")) and line.startswith(("}", ")", "]"))
        for above, line in pairwise(text.stripped)
    )


def num_twins(text: OriginalFacts, before: OriginalFacts) -> int:
    """Neighbours of one depth that are nearly alike, and were no neighbours before."""
    indents, lines, known = text.indents, text.stripped, before.neighbours
    found = 0
    for number, (above, line) in enumerate(pairwise(lines)):
        if above == line or min(len(above), len(line)) < 5 or (above, line) in known:
            continue
        if indents[number] == indents[number + 1]:
            found += fuzz.ratio(above, line, score_cutoff=TWIN_RATIO) > 0
    return found


def num_labels_twice(text: OriginalFacts) -> int:
    """Keys, fields and patterns that stand once more in one block."""
    found = []
    for header, line in zip(text.block_headers, text.stripped, strict=True):
        label = _LABEL.match(line)
        if label is not None and not (label[2] == ":" and label[1] in _STATEMENTS):
            found.append((header, label[1]))
    return len(found) - len(set(found))


def num_ellipses(text: OriginalFacts) -> int:
    """Lines with dots for something left out."""
    return sum(_ELLIPSIS.search(line) is not None for line in text.stripped)
