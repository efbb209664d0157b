"""Two steps are under way at once only where that takes less time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from batching.lanes import Lanes
from batching.step_costs import CostRates, StepCosts, StepSize

ROW_COUNTS = (1, 17, 65, 257, 1025, 4097)


def lanes_of(step_ms: Callable[[int], float], *, host_ms: float, rows: int = 65) -> Lanes:
    """Lanes that have seen steps of 16 requests of so many rows each."""
    costs = StepCosts({count: step_ms(count) for count in ROW_COUNTS}, rates=CostRates())
    lanes = Lanes(costs)
    for _ in range(50):
        size = StepSize(num_rows=16 * rows, num_plain_rows=0, num_pairs=0, num_requests=16)
        lanes.observe(size, host_ms)
    return lanes


def test_there_is_one_lane_before_anything_was_measured() -> None:
    costs = StepCosts({1: 1.0, 65: 65.0}, rates=CostRates())
    assert Lanes(costs).choose(16) == 1
    unknown = Lanes(None)
    unknown.observe(StepSize(num_rows=1, num_plain_rows=0, num_pairs=0, num_requests=1), 1.0)
    assert unknown.choose(16) == 1


@pytest.mark.parametrize(
    ("num_requests", "num_lanes"),
    [(0, 1), (1, 1), (2, 1), (8, 2), (16, 2), (64, 2)],
)
def test_two_lanes_where_rows_take_the_time(num_requests: int, num_lanes: int) -> None:
    """Weights take 3 ms, as much as 200 rows do, and the host 0.25 ms a request."""
    lanes = lanes_of(lambda rows: max(3.0, 0.015 * rows), host_ms=4.0)
    assert lanes.choose(num_requests) == num_lanes


def test_one_lane_where_weights_take_the_time() -> None:
    assert lanes_of(lambda rows: 3.0 + 1e-4 * rows, host_ms=1.0, rows=1).choose(16) == 1


def test_one_lane_where_the_host_takes_next_to_nothing() -> None:
    assert lanes_of(lambda rows: 0.2 + 0.015 * rows, host_ms=0.1).choose(16) == 1


def test_a_choice_is_kept_while_both_are_about_as_good() -> None:
    costs = StepCosts({1: 0.16, 4097: 41.12}, rates=CostRates())
    size = StepSize(num_rows=1040, num_plain_rows=0, num_pairs=0, num_requests=16)
    lanes = Lanes(costs)
    for host_ms, expected in ((0.2, 1), (1.0, 2), (0.2, 2), (0.05, 1), (0.2, 1)):
        for _ in range(80):
            lanes.observe(size, host_ms)
        assert lanes.choose(16) == expected
