"""One edit in five dialects, each derived from the two texts alone.

`markers`: changed lines, kept lines around them, and comments that stand for all else.
`search_replace`: blocks between `<<<<<<< SEARCH`, `=======` and `>>>>>>> REPLACE`.
`diff`: a unified diff. `hashline`: JSON operations on lines named `NUMBER:HASH`.
`whole_file`: the result itself. A writer returns None where its dialect cannot say the edit.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable

from lazy_edit_bench.kinds import Hunk, hunks_of
from lazy_edit_bench.languages import syntax_of
from lazy_edit_bench.task import Dialect

NUM_CONTEXT_LINES = 3
MAX_CONTEXT_LINES = 12
MARKER_TEXT = "... existing code ..."


def write_update(dialect: Dialect, path: str, original: str, result: str) -> str | None:
    """The edit as an update of `dialect`, or None."""
    return _WRITERS[dialect](path, original, result)


def line_hash(line: str) -> str:
    """The name of a line: four hexadecimal digits of its SHA-256, white space at its end cut."""
    return hashlib.sha256(line.rstrip().encode()).hexdigest()[:4]


def numbered_lines(original: str) -> list[str]:
    """The file as an agent that writes `hashline` has read it: `NUMBER:HASH|TEXT`."""
    lines = original.splitlines()
    return [f"{at}:{line_hash(line)}|{line}" for at, line in enumerate(lines, start=1)]


def as_text(lines: list[str], like: str) -> str:
    """Lines as a file that ends as `like` does."""
    return "\n".join(lines) + ("\n" if like.endswith("\n") and lines else "")


def _search_replace(path: str, original: str, result: str) -> str | None:
    old = original.splitlines()
    if not old or original.endswith("\n") != result.endswith("\n"):
        return None
    blocks = []
    for hunk in _joined(old, hunks_of(old, result.splitlines()), min_gap=2):
        grown = _unique(old, hunk)
        if grown is None:
            return None
        search, replace = old[grown.start : grown.end], list(grown.new)
        if any(line.startswith(("<<<<<<<", "=======", ">>>>>>>")) for line in search + replace):
            return None
        blocks += ["<<<<<<< SEARCH", *search, "=======", *replace, ">>>>>>> REPLACE"]
    return "\n".join([path, *blocks]) + "\n" if blocks else None


def _diff(path: str, original: str, result: str) -> str | None:
    if original.endswith("\n") != result.endswith("\n"):
        return None
    lines = []
    for line in difflib.unified_diff(
        original.splitlines(keepends=True),
        result.splitlines(keepends=True),
        f"a/{path}",
        f"b/{path}",
        n=NUM_CONTEXT_LINES,
    ):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines) or None


def _hashline(path: str, original: str, result: str) -> str | None:
    if original.endswith("\n") != result.endswith("\n"):
        return None
    old = original.splitlines()

    def name(index: int) -> str:
        return f"{index + 1}:{line_hash(old[index])}"

    edits: list[dict[str, object]] = []
    for hunk in hunks_of(old, result.splitlines()):
        lines = list(hunk.new)
        if hunk.start < hunk.end:
            edit: dict[str, object] = {"op": "replace", "pos": name(hunk.start)}
            if hunk.end > hunk.start + 1:
                edit["end"] = name(hunk.end - 1)
        elif hunk.start:
            edit = {"op": "append", "pos": name(hunk.start - 1)}
        else:
            edit = {"op": "prepend"}
        edits.append({**edit, "lines": lines})
    return json.dumps(edits, ensure_ascii=False, indent=1) if edits else None


def _whole_file(path: str, original: str, result: str) -> str | None:
    return result if result != original and result.strip() else None


def _markers(path: str, original: str, result: str) -> str | None:
    """A lazy update whose kept lines name one place each; markers indent as the line after them."""
    old, comment = original.splitlines(), syntax_of(path).comment
    if original.endswith("\n") != result.endswith("\n") or MARKER_TEXT in original:
        return None
    hunks = hunks_of(old, result.splitlines())
    shown: set[int] = set()
    for hunk in hunks:
        before = _anchor(old, hunk.start, back=True)
        after = _anchor(old, hunk.end, back=False)
        if before is None or after is None:
            return None
        shown.update(range(before, hunk.start), range(hunk.end, after))
    lines: list[str] = []
    at = 0
    for hunk in [*hunks, Hunk(len(old), len(old), ())]:
        for index in range(at, hunk.start):
            if index in shown:
                lines.append(old[index])
            elif index == at or index - 1 in shown:
                lines.append(_marker(comment, old[index]))
        lines += hunk.new
        at = hunk.end
    return "\n".join(lines) + "\n"


def _marker(comment: str, line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return indent + comment.format(MARKER_TEXT)


def _anchor(old: list[str], border: int, *, back: bool) -> int | None:
    """Where kept lines up to (`back`) or from `border` must begin or end to stand in the file once.

    The file's own ends need no lines.
    """
    for length in range(NUM_CONTEXT_LINES, MAX_CONTEXT_LINES + 1):
        start, end = (border - length, border) if back else (border, border + length)
        if start <= 0 and back:
            return 0
        if end >= len(old) and not back:
            return len(old)
        if old[start].strip() and old[end - 1].strip() and num_places(old, old[start:end]) == 1:
            return start if back else end
    return None


def num_places(lines: list[str], run: list[str]) -> int:
    """How often `run` stands in `lines`, places that overlap included."""
    length = len(run)
    return sum(lines[at : at + length] == run for at in range(len(lines) - length + 1))


def _joined(old: list[str], hunks: list[Hunk], *, min_gap: int) -> list[Hunk]:
    """Hunks with fewer than `min_gap` kept lines between them as one."""
    joined: list[Hunk] = []
    for hunk in hunks:
        if joined and hunk.start - joined[-1].end < min_gap:
            last = joined.pop()
            between = old[last.end : hunk.start]
            hunk = Hunk(last.start, hunk.end, (*last.new, *between, *hunk.new))
        joined.append(hunk)
    return joined


def _unique(old: list[str], hunk: Hunk) -> Hunk | None:
    """The hunk with as many kept lines as make its old lines stand in the file once."""
    for length in range(MAX_CONTEXT_LINES + 1):
        start, end = max(0, hunk.start - length), min(len(old), hunk.end + length)
        search = old[start:end]
        if any(line.strip() for line in search) and num_places(old, search) == 1:
            new = (*old[start : hunk.start], *hunk.new, *old[hunk.end : end])
            return Hunk(start, end, new)
    return None


_WRITERS: dict[Dialect, Callable[[str, str, str], str | None]] = {
    "markers": _markers,
    "search_replace": _search_replace,
    "diff": _diff,
    "hashline": _hashline,
    "whole_file": _whole_file,
}
