"""The lines of an original by text and place, against a search line by line."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.line_index import indent_unit, leaves, num_equal_lines

LINES = st.lists(st.sampled_from(["a", "b", " a", "", "}"]), min_size=1, max_size=20)


def num_equal_one_by_one(a: Sequence[str], i: int, b: Sequence[str], j: int, step: int) -> int:
    size = 0
    while 0 <= i < len(a) and 0 <= j < len(b) and a[i] == b[j]:
        i, j, size = i + step, j + step, size + 1
    return size


@given(a=LINES, b=LINES, step=st.sampled_from([-1, 1]), data=st.data())
def test_equal_lines_are_counted_in_both_directions(
    a: list[str], b: list[str], step: int, data: st.DataObject
) -> None:
    i = data.draw(st.integers(0, len(a) - 1))
    j = data.draw(st.integers(0, len(b) - 1))
    assert num_equal_lines(a, i, b, j, step) == num_equal_one_by_one(a, i, b, j, step)


@given(common=LINES, before=LINES, after=LINES, other=LINES)
def test_long_equal_stretches_are_counted_to_their_last_line(
    common: list[str], before: list[str], after: list[str], other: list[str]
) -> None:
    a, b = [*before, *common * 9, *after], [*common * 9, *other]
    found = num_equal_lines(a, len(before), b, 0, 1)
    assert found >= 9 * len(common)
    assert found == num_equal_one_by_one(a, len(before), b, 0, 1)
    last = len(before) + 9 * len(common) - 1
    back = num_equal_lines(a, last, b, 9 * len(common) - 1, -1)
    assert back == 9 * len(common)


def test_beyond_the_last_line_and_before_the_first_nothing_is_equal() -> None:
    assert num_equal_lines(["a"], 1, ["a"], 0, 1) == 0
    assert num_equal_lines(["a"], -1, ["a"], 0, -1) == 0
    assert num_equal_lines([], 0, [], 0, 1) == 0


def test_lists_and_tuples_may_be_compared() -> None:
    assert num_equal_lines(["a", "b"], 0, ("a", "b", "c"), 0, 1) == 2


def test_many_equal_lines_are_counted_slice_by_slice() -> None:
    lines = [str(number) for number in range(200_000)]
    started = time.thread_time()
    for _ in range(20):
        assert num_equal_lines(lines, 0, [*lines], 0, 1) == len(lines)
        assert num_equal_lines(lines, len(lines) - 1, lines, len(lines) - 1, -1) == len(lines)
    assert time.thread_time() - started < 2.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return total", True),
        ("return", True),
        ("raise ValueError(", False),
        ("return {", False),
        ("return (", False),
        ("throw error;", True),
        ("break", True),
        ("continue;", True),
        ("returned = 1", False),
        ("breaks()", False),
        ("x = return_value", False),
    ],
)
def test_lines_that_leave_a_block(text: str, expected: bool) -> None:
    assert leaves(text) is expected


def test_the_unit_is_the_smallest_indentation_but_for_stars() -> None:
    assert indent_unit(["a", "    b", "        c", " * d"]) == "    "
    assert indent_unit(["a", "\tb"]) == "\t"
    assert indent_unit(["a", "   ", ""]) == ""
