"""A second merger, which confirms what the tasks promise.

It shares nothing with the writers of `dialects`: search and replace works on the text and not on
lines, diffs are read by their numbers, hashes are computed while lines are counted, and markers are
read by kept runs. It is strict: what it cannot place without doubt is `UndecidedError`.

`is_expansion` asks less, of updates that agents wrote: whether a result is the update with each
marker replaced by one run of the original.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise

from lazy_edit_bench.task import Dialect

_MARKER = re.compile(
    r"^\s*(?:#|//|--|/\*|<!--|\{/\*|;|%|\"|')?\s*\.\.\."
    r"|^\s*(?:#|//|--|/\*|<!--|\{/\*|;|%)\s*[\[(]?(?:rest|remaining|existing|unchanged|same|keep|other)\b",
    re.IGNORECASE,
)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


class UndecidedError(Exception):
    """The strict reader finds no place, or several."""


def apply_strictly(dialect: Dialect, original: str, update: str) -> str:
    """The file after the update. Raises UndecidedError."""
    return _READERS[dialect](original, update)


def is_marker(line: str) -> bool:
    """Whether the line stands for lines that are left as they are."""
    return _MARKER.match(line) is not None


def is_expansion(original: str, update: str, result: str) -> bool:
    """Whether `result` is `update` with a run of `original` for each marker and at both ends."""
    wanted, old = result.splitlines(), original.splitlines()
    longest_run = [0] * (len(wanted) + 1)
    previous = [0] * (len(old) + 1)
    for at in range(len(wanted) - 1, -1, -1):
        current = [0] * (len(old) + 1)
        for index in range(len(old) - 1, -1, -1):
            if old[index] == wanted[at]:
                current[index] = previous[index + 1] + 1
        longest_run[at], previous = max(current), current
    sent = update.strip("\n").splitlines()
    reached = set(range(longest_run[0] + 1)) if wanted else {0}
    for line in sent:
        if is_marker(line) and not (line in old and line in wanted):
            reached = {end for at in reached for end in range(at, at + longest_run[at] + 1)}
        elif line.strip():
            reached = {
                at + 1
                for at in reached
                if at < len(wanted) and wanted[at].rstrip() == line.rstrip()
            }
        else:  # a blank line may be layout of the update
            reached |= {at + 1 for at in reached if at < len(wanted) and not wanted[at].strip()}
        # An update may leave out blank lines of the file beside a marker.
        reached |= {at + 1 for at in reached if at < len(wanted) and not wanted[at].strip()}
    return any(longest_run[at] >= len(wanted) - at for at in reached)


def _search_replace(original: str, update: str) -> str:
    text = original if original.endswith("\n") else original + "\n"
    blocks = re.findall(
        r"^<<<<<<< SEARCH\n(.*?)^=======\n(.*?)^>>>>>>> REPLACE$", update, re.DOTALL | re.MULTILINE
    )
    if not blocks:
        raise UndecidedError("no block")
    for search, replace in blocks:
        places = [match.start() for match in re.finditer(f"^(?={re.escape(search)})", text, re.M)]
        if not search or len(places) != 1:
            raise UndecidedError(f"a block stands in {len(places)} places")
        text = text[: places[0]] + replace + text[places[0] + len(search) :]
    return text if original.endswith("\n") else text.removesuffix("\n")


def _diff(original: str, update: str) -> str:
    source, at = original.split("\n"), 0
    made: list[str] = []
    wanted = 0
    for line in update.split("\n"):
        header = _HUNK.match(line)
        if header is not None:
            first, wanted = int(header[1]), int(header[2] or 1)
            start = first - 1 if wanted else first
            made += source[at:start]
            at = start
        elif line.startswith("+") and not line.startswith("+++ b/"):
            made.append(line[1:])
        elif wanted and line[:1] in ("-", " ") and not line.startswith("--- a/"):
            if at >= len(source) or source[at] != line[1:]:
                raise UndecidedError(f"line {at + 1} is another one")
            if line[0] == " ":
                made.append(source[at])
            at, wanted = at + 1, wanted - 1
    return "\n".join(made + source[at:])


def _hashline(original: str, update: str) -> str:
    lines = original.splitlines()

    def index_of(name: str) -> int:
        number, _, hashed = name.partition(":")
        index = int(number) - 1
        if not 0 <= index < len(lines):
            raise UndecidedError(f"no line {number}")
        if hashlib.sha256(lines[index].rstrip().encode()).hexdigest()[:4] != hashed:
            raise UndecidedError(f"line {number} is another one")
        return index

    places = []
    for edit in json.loads(update):
        if edit["op"] == "prepend":
            places.append((0, 0, edit["lines"]))
        elif edit["op"] == "append":
            after = index_of(edit["pos"]) + 1
            places.append((after, after, edit["lines"]))
        else:
            first = index_of(edit["pos"])
            places.append((first, index_of(edit.get("end", edit["pos"])) + 1, edit["lines"]))
    places.sort(key=lambda place: place[:2])
    if any(one[1] > other[0] for one, other in pairwise(places)):
        raise UndecidedError("edits overlap")
    for start, end, new in reversed(places):
        lines[start:end] = new or []
    return "\n".join(lines) + ("\n" if original.endswith("\n") and lines else "")


def _whole_file(original: str, update: str) -> str:
    return update


def _markers(original: str, update: str) -> str:
    """Each segment replaces from its first kept run to its last; both stand in the file once."""
    old = original.splitlines()
    segments: list[list[str]] = [[]]
    for line in update.splitlines():
        if is_marker(line) and line not in old:
            segments.append([])
        else:
            segments[-1].append(line)
    made: list[str] = []
    at = 0
    for number, segment in enumerate(segments):
        if not any(line.strip() for line in segment):
            continue
        start = 0 if number == 0 else _place(old, segment)
        last = number == len(segments) - 1
        end = len(old) if last else len(old) - _place(old[::-1], segment[::-1])
        if not at <= start <= end:
            raise UndecidedError("segments overlap")
        made += old[at:start] + segment
        at = end
    rest = old[at:]
    return "\n".join(made + rest) + ("\n" if original.endswith("\n") else "")


def _place(old: list[str], segment: list[str]) -> int:
    """Where the longest kept run at the segment's front stands. Raises UndecidedError."""
    places = [at for at, line in enumerate(old) if line == segment[0]]
    for length in range(2, len(segment) + 1):
        longer = [at for at in places if old[at : at + length] == segment[:length]]
        if not longer:
            break
        places = longer
    if len(places) != 1:
        raise UndecidedError(f"kept lines stand in {len(places)} places")
    return places[0]


_READERS: dict[Dialect, Callable[[str, str], str]] = {
    "search_replace": _search_replace,
    "diff": _diff,
    "hashline": _hashline,
    "whole_file": _whole_file,
    "markers": _markers,
}
