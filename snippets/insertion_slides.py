"""An insertion between equal lines can be told in several ways; agents tell the one that reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snippets.code_blocks import is_whole
from snippets.hunks import Hunk


def slid_insertions(hunks: Sequence[Hunk], expected: Sequence[str]) -> list[Hunk]:
    """The hunks, each insertion where its lines are whole definitions or statements if they can.

    No hunk comes nearer to its neighbours than to touch them.
    """
    slid: list[Hunk] = []
    for number, hunk in enumerate(hunks):
        floor = slid[-1].new_end if slid else 0
        following = hunks[number + 1] if number + 1 < len(hunks) else None
        ceiling = len(expected) if following is None else following.new_start
        slid.append(_slid(hunk, expected, floor, ceiling) if hunk.is_insertion else hunk)
    return slid


def _slid(hunk: Hunk, expected: Sequence[str], floor: int, ceiling: int) -> Hunk:
    """The insertion at the best of the places between two borders of the expected text."""
    steps = [0]
    start, end = hunk.new_start, hunk.new_end
    while start > floor and expected[start - 1] == expected[end - 1]:
        start, end = start - 1, end - 1
        steps.append(start - hunk.new_start)
    start, end = hunk.new_start, hunk.new_end
    while end < ceiling and expected[start] == expected[end]:
        start, end = start + 1, end + 1
        steps.append(start - hunk.new_start)

    def reads_well(step: int) -> tuple[bool, bool, int]:
        lines = expected[hunk.new_start + step : hunk.new_end + step]
        return is_whole(lines), bool(lines[0].strip()), -abs(step)

    best = max(steps, key=reads_well)
    return replace(
        hunk,
        old_start=hunk.old_start + best,
        old_end=hunk.old_end + best,
        new_start=hunk.new_start + best,
        new_end=hunk.new_end + best,
    )
