"""Small edits of one file, as an agent sends them one after another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.evaluate.cases.case_file import Case

_LAST_WORD = re.compile(r"([A-Za-z_]\w*)(\W*)$")
_MARKERS = {".py": "#", ".js": "//", ".ts": "//", ".tsx": "//", ".jsx": "//", ".mjs": "//"}


@dataclass(frozen=True, slots=True)
class LineEdit:
    """An update that changes line `number` (from 0) and shows a line on both sides."""

    number: int
    update: str
    changed_line: str


def marker_for(path: str) -> str | None:
    """The comment that stands for unchanged code, None for languages that are left out."""
    comment = _MARKERS.get(path[path.rfind(".") :])
    return None if comment is None else f"{comment} ... existing code ..."


def line_edits(lines: Sequence[str], *, marker: str, start: int, stop: int) -> list[LineEdit]:
    """One edit for each line in `[start, stop)` that has a word to rename and unlike neighbours."""
    edits = []
    for number in range(max(start, 1), min(stop, len(lines) - 1)):
        before, line, after = lines[number - 1 : number + 2]
        changed = _LAST_WORD.sub(r"\1_again\2", line)
        if changed == line or not before.strip() or not after.strip():
            continue
        if lines.count(before) > 1 or lines.count(after) > 1:
            continue
        update = "\n".join([marker, before, changed, after, marker])
        edits.append(LineEdit(number, update, changed))
    return edits


def spread(edits: Sequence[LineEdit], count: int) -> list[LineEdit]:
    """`count` edits at even distances, one in the middle; fewer if there are not so many."""
    if len(edits) <= count:
        return list(edits)
    if count == 1:
        return [edits[len(edits) // 2]]
    return [edits[place * (len(edits) - 1) // (count - 1)] for place in range(count)]


def files_of(cases: Sequence[Case], *, min_lines: int, max_lines: int) -> list[Case]:
    """One case of each file with so many lines and a marker of its own."""
    seen = set[str]()
    found = []
    for case in cases:
        num_lines = case.original.count("\n")
        if case.original not in seen and marker_for(case.path) and min_lines <= num_lines:
            seen.add(case.original)
            if num_lines <= max_lines:
                found.append(case)
    return found
