from __future__ import annotations

import itertools
import random

import pytest

from snippets.hunks import find_hunks
from training.condense import condense

ORIGINAL = [
    line
    for number in range(40)
    for line in (f"def function_{number}(value):", f"    return value + {number}", "", "")
]


def changed(lines: list[str], hunks: list[tuple[int, int]]) -> list[str]:
    expected = list(lines)
    for place, (at, num_removed) in reversed(list(enumerate(hunks))):
        expected[at : at + num_removed] = [f"new_{place} = {at}"]
    return expected


@pytest.mark.parametrize("seed", range(30))
def test_the_edit_stays_and_the_stretches_between_get_short(seed: int) -> None:
    rng = random.Random(seed)
    expected = changed(ORIGINAL, [(20, 1), (60, 0), (61, 2), (140, 1)])
    hunks = find_hunks(ORIGINAL, expected)
    old, new = condense(ORIGINAL, expected, hunks, rng=rng)
    condensed = find_hunks(old, new)
    assert len(old) < len(ORIGINAL) - 60
    assert [old[h.old_start : h.old_end] for h in condensed] == [
        ORIGINAL[h.old_start : h.old_end] for h in hunks
    ]
    assert [new[h.new_start : h.new_end] for h in condensed] == [
        expected[h.new_start : h.new_end] for h in hunks
    ]
    assert old[:20] == ORIGINAL[:20]
    assert old[-15:] == ORIGINAL[-15:]
    for first, second in itertools.pairwise(condensed):
        assert second.old_start - first.old_end >= 1


def test_short_stretches_stay_whole() -> None:
    expected = changed(ORIGINAL, [(20, 1), (26, 1), (33, 1)])
    hunks = find_hunks(ORIGINAL, expected)
    condensed = condense(ORIGINAL, expected, hunks, rng=random.Random(0))
    assert condensed == (ORIGINAL, expected)


def test_cuts_are_made_at_blank_lines_where_they_are_near() -> None:
    expected = changed(ORIGINAL, [(20, 1), (140, 1)])
    hunks = find_hunks(ORIGINAL, expected)
    for seed in range(20):
        old, _ = condense(ORIGINAL, expected, hunks, rng=random.Random(seed))
        for line, following in itertools.pairwise(old):
            if line.startswith("def"):
                assert following.startswith("    return") or following.startswith("new")
