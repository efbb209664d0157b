"""Asks at a terminal about each change of a result, as `git add -p` does."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from apply_client.cli.shown_diff import coloured

_HELP = """\
y - take this change
n - leave it out
a - take it and all that follow
d, q - leave it and all that follow out
? - this help
"""
_HEAD = re.compile("^(?=@@ )", re.MULTILINE)
_RANGES = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
# The mark of UTF-16 begins that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a unified diff, and which lines it puts in the place of which; both from 0."""

    text: str
    old: range
    new: range


def review_changes(before: bytes, after: bytes, diff: str) -> bytes:
    """The file with those changes that are taken; the end of the input takes no more of them.

    `diff` is the unified diff of both, whose lines end at "\\n" alone.
    """
    parts = list(_parts_of(diff))
    taken: list[_Part] = []
    rest: str | None = None
    for number, part in enumerate(parts, 1):
        if rest is None:
            _show(part.text)
            answer = _ask(f"Take this change ({number} of {len(parts)}) [y,n,a,d,q,?]? ")
            rest = {"a": "y", "d": "n", "q": "n"}.get(answer)
        else:
            answer = rest
        if (rest or answer) == "y":
            taken.append(part)
    mark, encoding = next((pair for pair in _MARKS if before.startswith(pair[0])), (b"", "utf-8"))
    newline = "\n".encode(encoding)
    old, new = (_lines_of(content.removeprefix(mark), newline) for content in (before, after))
    lines: list[bytes] = []
    place = 0
    for part in taken:
        lines += old[place : part.old.start]
        lines += new[part.new.start : part.new.stop]
        place = part.old.stop
    return mark + b"".join([*lines, *old[place:]])


def _parts_of(diff: str) -> Iterator[_Part]:
    for text in _HEAD.split(diff)[1:]:
        match = _RANGES.match(text)
        assert match is not None, text
        old_start, old_count, new_start, new_count = match.groups(default="1")
        old, new = _lines_at(old_start, old_count), _lines_at(new_start, new_count)
        yield _Part(text.removesuffix("\n"), old, new)


def _lines_at(start: str, count: str) -> range:
    """An empty range names the line before it."""
    first = int(start) - (int(count) > 0)
    return range(first, first + int(count))


def _lines_of(content: bytes, newline: bytes) -> list[bytes]:
    """Lines with their ends; a newline of several bytes stands at a multiple of its length."""
    lines, start, at = [], 0, content.find(newline)
    while at >= 0:
        if at % len(newline) == 0:
            lines.append(content[start : at + len(newline)])
            start = at + len(newline)
        at = content.find(newline, at + 1)
    return [*lines, content[start:]]


def _show(text: str) -> None:
    for line in text.split("\n"):
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
