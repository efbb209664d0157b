"""A marker stands for something, so segments beside it hardly touch."""

from __future__ import annotations

from dataclasses import replace

from apply_service.edit.empty_gaps import EMPTY_GAP_COST, without_empty_gaps
from apply_service.edit.line_index import LineIndex
from apply_service.edit.placement import Placement

LINES = ["jobs:", "  - a", "  - b", "", "  - c"]


def placement(number: int, start: int, end: int, *lines: str, weight: float = 0.0) -> Placement:
    return Placement(
        segment=number, start=start, end=end, lines=lines, weight=weight, reason="context"
    )


def weights(*candidates: list[Placement]) -> list[list[float]]:
    order = range(len(candidates))
    found = without_empty_gaps(candidates, order, LineIndex(LINES))
    return [[one.weight for one in layer] for layer in found]


def test_what_touches_its_neighbour_gets_lighter() -> None:
    header = [placement(0, 0, 1, "tasks:")]
    items = [placement(1, 1, 2, "  - x"), placement(1, 2, 3, "  - x", weight=-1.0)]
    assert weights(header, items) == [[-EMPTY_GAP_COST], [-1.0, -EMPTY_GAP_COST]]


def test_a_blank_line_is_no_gap() -> None:
    above, below = [placement(0, 2, 3, "  - x")], [placement(1, 4, 5, "  - y")]
    assert weights(above, below) == [[-EMPTY_GAP_COST], [-EMPTY_GAP_COST]]


def test_what_stays_as_it_is_stands_where_it_stood() -> None:
    header = [placement(0, 0, 1, "jobs:"), placement(0, 0, 0, "jobs:", weight=-2.0)]
    items = [placement(1, 1, 2, "  - x")]
    assert weights(header, items) == [[0.0, -2.0], [-EMPTY_GAP_COST]]


def test_what_is_certain_stays_too() -> None:
    header = [replace(placement(0, 0, 1, "tasks:"), is_certain=True)]
    assert weights(header, [placement(1, 1, 2, "  - x")]) == [[0.0], [-EMPTY_GAP_COST]]


def test_nothing_changes_where_the_best_ones_are_apart() -> None:
    header = [placement(0, 0, 1, "tasks:")]
    items = [placement(1, 2, 3, "  - x"), placement(1, 1, 2, "  - x", weight=-1.0)]
    assert weights(header, items) == [[0.0], [0.0, -1.0]]
