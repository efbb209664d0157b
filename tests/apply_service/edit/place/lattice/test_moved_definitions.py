"""Definitions that an update sends in another order than the file's are read as a move."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.lattice.moved_definitions import Move, _risings, moves_of
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex

FILE = """\
def first():
    one = 1
    return one


def second():
    two = 2
    return two


def third():
    return 3
""".splitlines()


def moves(update: str) -> list[Move]:
    """The moves that an update of the file may be."""
    original = OriginalFacts(FILE, "python")
    scan = MarkerScan(OriginalIndex(FILE), language="python")
    return list(moves_of(update.splitlines(), original, scan))


def test_a_definition_sent_too_early_comes_with_its_whole_body_and_goes_where_it_stood() -> None:
    update = (
        "def second():\n    # ... existing code ...\n\ndef first():\n    # ... existing code ...\n"
    )
    found = {move.removed: move.lines for move in moves(update)}
    assert found[("second",)][:3] == ["def second():", "    two = 2", "    return two"]
    assert found[("second",)][4:] == ["def first():", "    # ... existing code ..."]
    assert ("first",) in found


def test_what_was_sent_whole_stays_as_sent() -> None:
    update = "def third():\n    return 4\n\ndef first():\n    # ... existing code ...\n"
    found = {move.removed: move for move in moves(update)}
    assert found[("third",)].lines == update.splitlines()
    assert found[("third",)].new_lines == frozenset({1, 2})


@pytest.mark.parametrize(
    "update",
    [
        "def first():\n    # ... existing code ...\n\ndef third():\n    return 4\n",
        "def fourth():\n    return 4\n\ndef first():\n    # ... existing code ...\n",
    ],
)
def test_definitions_in_the_files_order_are_no_move(update: str) -> None:
    assert not moves(update)


@given(st.lists(st.integers(0, 30), unique=True, max_size=8))
def test_a_longest_rising_subsequence_is_as_long_as_brute_force_finds(numbers: list[int]) -> None:
    best = max(
        size
        for size in range(len(numbers) + 1)
        for chosen in combinations(numbers, size)
        if list(chosen) == sorted(chosen)
    )
    for places in _risings(numbers):
        chosen = [numbers[place] for place in sorted(places)]
        assert chosen == sorted(chosen)
        assert len(chosen) == best


def test_a_definition_without_a_name_is_none_that_was_sent() -> None:
    """An empty key names a function; blank lines of an update have no name either."""
    lines = ["var h = {", '  "": function () {', "    return 1", "  },", "};"]
    original = OriginalFacts(lines, "javascript")
    assert original.names[""] == 1
    scan = MarkerScan(OriginalIndex(lines), language="javascript")
    assert list(moves_of(["", "var h = {", "// ...", "};", ""], original, scan)) == []
