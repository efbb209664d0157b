"""Asks at a terminal about each change of a result, as `git add -p` does."""

from __future__ import annotations

import sys

from apply_service.cli.shown_diff import coloured
from apply_service.edit.text.alignment import Hunk
from apply_service.edit.text.diff import diff_parts, lines_with_ends
from apply_service.edit.text.text_file import TextFile

_HELP = """\
y - take this change
n - leave it out
a - take it and all that follow
d, q - leave it and all that follow out
? - this help
"""


def review_changes(before: bytes, after: bytes) -> bytes:
    """The file with those changes that are taken; the end of the input takes no more of them."""
    file = TextFile.from_bytes(before)
    old = lines_with_ends(file.decode())
    new = lines_with_ends(TextFile.from_bytes(after).decode())
    parts = list(diff_parts(old, new))
    taken: list[Hunk] = []
    rest: str | None = None
    for number, (hunks, text) in enumerate(parts, 1):
        if rest is None:
            _show(text)
            answer = _ask(f"Take this change ({number} of {len(parts)}) [y,n,a,d,q,?]? ")
            rest = {"a": "y", "d": "n", "q": "n"}.get(answer)
        else:
            answer = rest
        if (rest or answer) == "y":
            taken += hunks
    text = "".join(_apply(old, new, taken))
    return file.byte_order_mark + text.encode(file.encoding)


def _apply(old: list[str], new: list[str], taken: list[Hunk]) -> list[str]:
    """The old lines with some of the changes."""
    lines: list[str] = []
    place = 0
    for hunk in taken:
        lines += old[place : hunk.old_start]
        lines += new[hunk.new_start : hunk.new_end]
        place = hunk.old_end
    return [*lines, *old[place:]]


def _show(text: str) -> None:
    for line in text.split("\n")[:-1]:
        print(coloured(line, sys.stderr), file=sys.stderr)


def _ask(question: str) -> str:
    """One of the answers; "q" at the end of the input."""
    while True:
        print(question, end="", file=sys.stderr)
        sys.stderr.flush()
        line = sys.stdin.readline()
        typed = line.strip().lower()
        if not line:
            return "q"
        if typed in ("y", "n", "a", "d", "q"):
            return typed
        print(_HELP, end="", file=sys.stderr)
