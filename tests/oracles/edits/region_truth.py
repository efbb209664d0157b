"""What each of several parts of a file must become, given the whole file before and after."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from apply_service.edit.text.alignment import Hunk, changed_hunks


def region_truths(
    original: Sequence[str], expected: Sequence[str], parts: Sequence[Sequence[str]]
) -> list[list[str]]:
    """The right rewrite of each part; parts are runs of the original, in its order.

    If the parts cover the edit, putting their truths into the original gives `expected` exactly.
    Where they do not, each gets what lies at its place by the alignment of the two texts.
    """
    spans = _try_locate(original, parts)
    assert spans is not None, "a part is no run of the original, or they are out of order"
    hunks = changed_hunks(original, expected)
    exact = _cut_exactly(original, expected, spans, hunks)
    borders = exact if exact is not None else _aligned(spans, hunks)
    return [list(expected[start:end]) for start, end in borders]


def are_in_order(original: Sequence[str], parts: Sequence[Sequence[str]]) -> bool:
    """Whether the parts are runs of the original that follow one another."""
    return _try_locate(original, parts) is not None


def _try_locate(
    original: Sequence[str], parts: Sequence[Sequence[str]]
) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    place = 0
    for part in parts:
        place = _find(original, part, place, len(original), near=place)
        if place < 0:
            return None
        spans.append((place, place + len(part)))
        place += len(part)
    return spans


def _find(lines: Sequence[str], run: Sequence[str], start: int, end: int, *, near: int) -> int:
    """Where `run` stands in `lines[start:end]`, the nearest to `near`; -1 if nowhere."""
    wanted = list(run)
    size = len(wanted)
    places = [
        at
        for at in range(start, end - size + 1)
        if not wanted or (lines[at] == wanted[0] and list(lines[at : at + size]) == wanted)
    ]
    return min(places, key=lambda at: abs(at - near), default=-1)


def _cut_exactly(
    original: Sequence[str],
    expected: Sequence[str],
    spans: Sequence[tuple[int, int]],
    hunks: Sequence[Hunk],
) -> list[tuple[int, int]] | None:
    """Spans of the expected text between which all that the parts leave out stands unchanged."""
    head = spans[0][0]
    num_tail = len(original) - spans[-1][1]
    tail = len(expected) - num_tail
    is_framed = (
        head <= tail
        and list(original[:head]) == list(expected[:head])
        and list(original[len(original) - num_tail :]) == list(expected[tail:])
    )
    if not is_framed:
        return None
    borders = [head]
    for (_, gap_start), (gap_end, _) in pairwise(spans):
        gap = original[gap_start:gap_end]
        near = _new_border(hunks, gap_start, is_end=True)
        place = near if not gap else _find(expected, gap, borders[-1], tail, near=near)
        if not borders[-1] <= place <= tail:
            return None
        borders += [place, place + len(gap)]
    borders.append(tail)
    return list(zip(borders[::2], borders[1::2], strict=True))


def _aligned(spans: Sequence[tuple[int, int]], hunks: Sequence[Hunk]) -> list[tuple[int, int]]:
    """The parts' places in the expected text; what was inserted at a border goes to one of them."""
    placed: list[tuple[int, int]] = []
    last = 0
    for start, end in spans:
        new_start = max(last, _new_border(hunks, start, is_end=False))
        last = max(new_start, _new_border(hunks, end, is_end=True))
        placed.append((new_start, last))
    return placed


def _new_border(hunks: Sequence[Hunk], border: int, *, is_end: bool) -> int:
    """A border between lines of the original in the expected text.

    Inside a hunk, and at one for the end of a part, it is the hunk's end; at the start of a part
    the hunk's start.
    """
    shift = 0
    for hunk in hunks:
        if hunk.old_start > border or (hunk.old_start == border and not is_end):
            break
        if border < hunk.old_end:
            return hunk.new_start if hunk.old_start == border else hunk.new_end
        shift = hunk.new_end - hunk.old_end
    return border + shift
