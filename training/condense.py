"""Shortens the unchanged stretches between hunks, so that several of them fit one window."""

from __future__ import annotations

import random
from collections.abc import Sequence

from snippets.hunks import EditHunk

_MIN_GAP = 10
_MIN_KEPT = 3
_MAX_KEPT = 7


def condense(
    original: Sequence[str],
    expected: Sequence[str],
    hunks: Sequence[EditHunk],
    *,
    rng: random.Random,
) -> tuple[list[str], list[str]]:
    """Both texts without the middle of every long stretch between two hunks.

    Cuts are made at blank lines where there are some near, so that what stays reads like code.
    """
    old: list[str] = []
    new: list[str] = []
    old_start = new_start = 0
    for hunk, following in zip(hunks, [*hunks[1:], None], strict=True):
        old += original[old_start : hunk.old_end]
        new += expected[new_start : hunk.new_end]
        old_start, new_start = hunk.old_end, hunk.new_end
        if following is None:
            break
        gap = original[hunk.old_end : following.old_start]
        kept_before, kept_after = _cuts(gap, rng)
        if kept_before + kept_after < len(gap):
            kept = gap[:kept_before]
            old += kept
            new += kept
            dropped = len(gap) - kept_after
            old_start, new_start = old_start + dropped, new_start + dropped
    return [*old, *original[old_start:]], [*new, *expected[new_start:]]


def _cuts(gap: Sequence[str], rng: random.Random) -> tuple[int, int]:
    """How many lines stay at both ends of a gap; all of them if it is short."""
    if len(gap) < _MIN_GAP:
        return len(gap), 0
    before = _to_blank(gap, rng.randint(_MIN_KEPT, _MAX_KEPT))
    after = _to_blank(gap[::-1], rng.randint(_MIN_KEPT, _MAX_KEPT))
    # One of the two blank lines is enough where the ends meet.
    if before < len(gap) and not gap[before].strip():
        before += 1
    return before, min(after, len(gap) - before)


def _to_blank(gap: Sequence[str], wanted: int) -> int:
    """The number of lines before the blank line nearest to `wanted`, or `wanted`."""
    blank = [n for n in range(_MIN_KEPT, min(2 * _MAX_KEPT, len(gap))) if not gap[n].strip()]
    return min(blank, key=lambda n: abs(n - wanted), default=min(wanted, len(gap)))
