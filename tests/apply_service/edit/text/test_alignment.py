"""Alignments are valid on any input, exact where lines are unique, and fast on long files."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.alignment import changed_hunks, matching_blocks

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "}"]), max_size=30)


@given(LINES, LINES)
def test_blocks_are_equal_and_rising(old: list[str], new: list[str]) -> None:
    old_end = new_end = 0
    for block in matching_blocks(old, new):
        assert block.length > 0
        assert block.old_start >= old_end
        assert block.new_start >= new_end
        assert (
            old[block.old_start : block.old_start + block.length]
            == (new[block.new_start : block.new_start + block.length])
        )
        old_end, new_end = block.old_start + block.length, block.new_start + block.length


@given(LINES, LINES)
def test_hunks_rebuild_the_new_version(old: list[str], new: list[str]) -> None:
    rebuilt: list[str] = []
    place = 0
    for hunk in changed_hunks(old, new):
        rebuilt += old[place : hunk.old_start] + new[hunk.new_start : hunk.new_end]
        place = hunk.old_end
    assert rebuilt + old[place:] == new


def test_one_changed_line_is_one_hunk() -> None:
    old = [f"line {number}" for number in range(50)]
    new = [*old[:20], "changed", *old[21:]]
    assert [(h.old_start, h.old_end, h.new_start, h.new_end) for h in changed_hunks(old, new)] == [
        (20, 21, 20, 21)
    ]


def test_equal_versions_have_no_hunk() -> None:
    assert changed_hunks(["a", "b"], ["a", "b"]) == []
    assert changed_hunks([], []) == []


def test_long_files_with_repeated_lines_stay_aligned() -> None:
    generator = random.Random(0)
    old = [generator.choice(["}", "", f"x{number}"]) for number in range(100_000)]
    new = [line for place, line in enumerate(old) if place % 1000 != 7]
    num_matched = sum(block.length for block in matching_blocks(old, new))
    assert num_matched >= len(new) - 100


def test_a_hundred_thousand_equal_lines_end() -> None:
    blocks = matching_blocks(["x", *["}"] * 100_000, "y"], ["q", *["}"] * 90_000, "r"])
    assert isinstance(blocks, list)
