"""The table of step costs: between its points, behind its end, and after steps that took longer."""

from __future__ import annotations

import random

import pytest

from batching.step_costs import ROW_COUNTS, CostRates, StepCosts, StepSize

MEASURED = {1: 60.0, 17: 70.0, 65: 110.0, 129: 180.0}


def size(num_rows: int, **changes: int) -> StepSize:
    values = {"num_plain_rows": 0, "num_pairs": 0, "num_requests": 1, **changes}
    return StepSize(num_rows=num_rows, **values)


def test_measured_points_and_the_lines_between_and_behind_them() -> None:
    costs = StepCosts(MEASURED, rates=CostRates())
    for num_rows, milliseconds in MEASURED.items():
        assert costs.step_ms(size(num_rows)) == pytest.approx(milliseconds)
    assert costs.step_ms(size(9)) == pytest.approx(65.0)
    assert costs.step_ms(size(97)) == pytest.approx(145.0)
    # 70 ms for the last 64 rows, and so on.
    assert costs.step_ms(size(257)) == pytest.approx(180 + 128 * 70 / 64)
    assert costs.step_ms(size(5000)) == pytest.approx(180 + 4871 * 70 / 64)


def test_one_point_is_enough() -> None:
    costs = StepCosts({1: 64.0}, rates=CostRates())
    assert costs.step_ms(size(1)) == pytest.approx(64.0)
    assert costs.step_ms(size(65)) == pytest.approx(128.0)


def test_rates_are_added() -> None:
    costs = StepCosts(MEASURED, rates=CostRates(plain_row_ms=0.5, pair_ms=0.001, request_ms=2.0))
    assert costs.step_ms(size(65, num_plain_rows=40)) == pytest.approx(90.0)
    assert costs.step_ms(size(65, num_pairs=10_000)) == pytest.approx(120.0)
    assert costs.step_ms(size(65, num_requests=4)) == pytest.approx(116.0)
    assert costs.step_ms(size(1, num_plain_rows=1000)) == pytest.approx(30.0), "never for free"


@pytest.mark.parametrize("num_measured", [1, 2, 4])
def test_steps_correct_what_was_measured_or_guessed(num_measured: int) -> None:
    def true_ms(num_rows: int) -> float:
        return 40.0 + 3.0 * num_rows

    generator = random.Random(5)
    costs = StepCosts(dict(list(MEASURED.items())[:num_measured]), rates=CostRates())
    for _ in range(3000):
        num_rows = generator.choice(ROW_COUNTS[:-1])
        costs.observe(size(num_rows), true_ms(num_rows) * generator.uniform(0.8, 1.2))
    for num_rows in (1, 3, 40, 65, 300):
        assert costs.step_ms(size(num_rows)) == pytest.approx(true_ms(num_rows), rel=0.15)


def test_a_machine_that_became_slower_moves_the_whole_table() -> None:
    costs = StepCosts(MEASURED, rates=CostRates())
    for _ in range(300):
        costs.observe(size(65), 220.0)
    assert costs.step_ms(size(65)) == pytest.approx(220.0, rel=0.05)
    assert costs.step_ms(size(1)) > 72.0


def test_one_stalled_step_changes_little() -> None:
    costs = StepCosts(MEASURED, rates=CostRates())
    costs.observe(size(65), 1e6)
    assert costs.step_ms(size(65)) < 1.4 * 110.0


def test_row_counts_are_those_of_whole_drafts_too() -> None:
    assert {1, 65, 129, 257} <= set(StepCosts(MEASURED, rates=CostRates()).row_counts)
