"""Shortens a unified diff to a few lines, keeping changed lines longest."""

from __future__ import annotations

from collections.abc import Sequence

MAX_CONTEXT_LINES = 3


def diff_excerpt(diff: str, max_lines: int) -> list[str]:
    """At most `max_lines` lines of a diff without the file's names; none for 0 or less.

    Lines around the changes are left out first; then what is over the limit, with a note.
    """
    lines = _body(diff)
    kept = lines
    for num_context in range(MAX_CONTEXT_LINES, -1, -1):
        kept = _near_changes(lines, num_context)
        if len(kept) <= max_lines:
            return kept
    if max_lines <= 0:
        return []
    return [*kept[: max_lines - 1], f"… {len(kept) - max_lines + 1} more lines of the diff"]


def num_changed(diff: str) -> tuple[int, int]:
    """Numbers of lines that a diff adds and removes."""
    signs = [line[:1] for line in _body(diff)]
    return signs.count("+"), signs.count("-")


def _body(diff: str) -> list[str]:
    """The lines of the hunks; a changed line may look like a file's name."""
    lines = diff.removesuffix("\n").split("\n") if diff else []
    has_names = len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")
    return lines[2:] if has_names else lines


def _near_changes(lines: Sequence[str], num_context: int) -> list[str]:
    """Headers, changed lines, and `num_context` lines around them."""
    changed = [position for position, line in enumerate(lines) if line[:1] in ("+", "-")]
    near = {
        position + distance
        for position in changed
        for distance in range(-num_context, num_context + 1)
    }
    return [
        line for position, line in enumerate(lines) if position in near or line.startswith("@@")
    ]
