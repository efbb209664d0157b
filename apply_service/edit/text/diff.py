"""Unified diffs that `git apply` and `patch` accept, line endings and missing newlines included."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from apply_service.edit.text.alignment import Hunk, bounded_hunks

NUM_CONTEXT_LINES = 3
_NO_NEWLINE = "\\ No newline at end of file\n"
_QUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def unified_diff(old_text: str, new_text: str, *, path: str | None = None) -> str:
    """The change from one text to the other; empty when they are equal.

    `path` is the name in the header, relative to the folder that the diff is applied in. Lines end
    at "\\n" only, and a CR before it is part of the line, so changed line endings show as well.
    """
    parts = [part for _, part in diff_parts(_lines_with_ends(old_text), _lines_with_ends(new_text))]
    if not parts:
        return ""
    name = (path or "file").lstrip("/")
    return "".join([f"--- {_quote('a/' + name)}\n", f"+++ {_quote('b/' + name)}\n", *parts])


def diff_parts(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[list[Hunk], str]]:
    """Each part of a unified diff that begins with `@@`, and the changes that it holds.

    The lines have their ends; the last one may lack it.
    """
    for group in _groups(bounded_hunks(old, new)):
        yield group, "".join(_format_group(group, old, new))


def _lines_with_ends(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _quote(name: str) -> str:
    """A file name as git writes it: C quotes for odd characters, a tab to end one with spaces."""
    if _QUOTED.search(name):
        escaped = _QUOTED.sub(lambda match: _escape(match[0]), name)
        return f'"{escaped}"'
    return name + "\t" if " " in name else name


def _escape(character: str) -> str:
    return _ESCAPES.get(character) or f"\\{ord(character):03o}"


def _groups(hunks: Sequence[Hunk]) -> Iterator[list[Hunk]]:
    """Hunks whose context would touch stand in one group."""
    group: list[Hunk] = []
    for hunk in hunks:
        if group and hunk.old_start - group[-1].old_end > 2 * NUM_CONTEXT_LINES:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _format_group(group: Sequence[Hunk], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(NUM_CONTEXT_LINES, first.old_start)
    trail = min(NUM_CONTEXT_LINES, len(old) - last.old_end)
    old_start, old_end = first.old_start - lead, last.old_end + trail
    new_start, new_end = first.new_start - lead, last.new_end + trail
    old_range = _format_range(old_start, old_end)
    new_range = _format_range(new_start, new_end)
    yield f"@@ -{old_range} +{new_range} @@\n"
    place = old_start
    for hunk in group:
        yield from _format_lines(" ", old[place : hunk.old_start])
        yield from _format_lines("-", old[hunk.old_start : hunk.old_end])
        yield from _format_lines("+", new[hunk.new_start : hunk.new_end])
        place = hunk.old_end
    yield from _format_lines(" ", old[place:old_end])


def _format_range(start: int, end: int) -> str:
    """`start,length` as unified diffs count: from 1, or the line before an empty range."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start if length == 0 else start + 1},{length}"


def _format_lines(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line
        if not line.endswith("\n"):
            yield "\n" + _NO_NEWLINE
