"""A marker stands for something, so segments beside it hardly touch."""

from __future__ import annotations

from dataclasses import replace

from apply_service.edit.place.empty_gaps import EMPTY_GAP_COST, TAKEN_GAP_COST, without_empty_gaps
from apply_service.edit.place.placement import Placement
from apply_service.edit.text.line_index import LineIndex

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
    assert weights(header, items) == [[0.0], [-1.0, -TAKEN_GAP_COST]]
    added = [placement(1, 1, 1, "  - x"), placement(1, 2, 2, "  - x", weight=-1.0)]
    assert weights(header, added) == [[0.0], [-1.0, -EMPTY_GAP_COST]]


def test_a_blank_line_is_no_gap() -> None:
    above = [placement(0, 2, 3, "  - x"), placement(0, 1, 2, "  - x", weight=-1.0)]
    assert weights(above, [placement(1, 4, 5, "  - y")]) == [[-1.0, -TAKEN_GAP_COST], [0.0]]


def test_of_two_neighbours_the_one_moves_that_loses_less() -> None:
    above = [placement(0, 0, 2, "  - x"), placement(0, 0, 1, "  - x", weight=-5.0)]
    below = [placement(1, 2, 3, "  - y"), placement(1, 4, 5, "  - y", weight=-2.0)]
    assert weights(above, below) == [[0.0, -5.0], [-2.0, -TAKEN_GAP_COST]]


def test_what_can_stand_nowhere_else_stays() -> None:
    header = [placement(0, 0, 1, "tasks:")]
    assert weights(header, [placement(1, 1, 2, "  - x")]) == [[0.0], [0.0]]


def test_what_stays_as_it_is_stands_where_it_stood() -> None:
    header = [placement(0, 0, 1, "jobs:"), placement(0, 0, 0, "jobs:", weight=-2.0)]
    items = [placement(1, 1, 2, "  - x"), placement(1, 2, 3, "  - x", weight=-8.0)]
    assert weights(header, items) == [[0.0, -2.0], [-8.0, -TAKEN_GAP_COST]]


def test_what_takes_lines_is_no_longer_certain() -> None:
    above = [replace(placement(0, 0, 2, "  - x"), is_certain=True)]
    above.append(placement(0, 0, 1, "  - x", weight=-5.0))
    below = [replace(placement(1, 2, 3, "  - y"), is_certain=True)]
    found = without_empty_gaps([above, below], range(2), LineIndex(LINES))
    assert [(one.weight, one.is_certain) for one in found[0]] == [
        (-5.0, False),
        (-TAKEN_GAP_COST, False),
    ]
    assert found[1] == below


def test_nothing_changes_where_the_best_ones_are_apart() -> None:
    header = [placement(0, 0, 1, "tasks:")]
    items = [placement(1, 2, 3, "  - x"), placement(1, 1, 2, "  - x", weight=-1.0)]
    assert weights(header, items) == [[0.0], [0.0, -1.0]]
