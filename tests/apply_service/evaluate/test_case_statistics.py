"""Wilson intervals and bootstrap bounds against published values and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap, gmean

from apply_service.evaluate.case_statistics import (
    bootstrap_lower_bound,
    bootstrap_ratio_interval,
    geometric_mean,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "total", "expected"),
    [
        (0, 10, (0.0, 0.2775)),
        (10, 10, (0.7225, 1.0)),
        (81, 263, (0.2553, 0.3662)),
        (0, 0, (0.0, 1.0)),
    ],
)
def test_known_values(successes: int, total: int, expected: tuple[float, float]) -> None:
    assert wilson_interval(successes, total) == pytest.approx(expected, abs=1e-4)


@given(st.integers(1, 5000), st.data())
def test_as_scipy_computes_it(total: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, total))
    reference = binomtest(successes, total).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(successes, total, z=1.959963984540054)
    assert (low, high) == pytest.approx((reference.low, reference.high), abs=1e-9)
    assert low <= successes / total <= high


def test_more_trials_narrow_it() -> None:
    widths = [high - low for low, high in (wilson_interval(n // 2, n) for n in (10, 100, 1000))]
    assert widths == sorted(widths, reverse=True)


def test_bound_of_ratios_is_near_the_one_that_scipy_finds() -> None:
    draws = np.random.default_rng(3)
    ratios = [float(ratio) for ratio in np.exp(draws.normal(0.05, 0.1, size=15))]
    reference = bootstrap(
        (ratios,), gmean, confidence_level=0.95, alternative="greater", method="percentile", rng=1
    )
    assert geometric_mean(ratios) == pytest.approx(gmean(ratios))
    bound = bootstrap_lower_bound(ratios)
    assert bound == pytest.approx(reference.confidence_interval.low, abs=0.004)
    assert bound == bootstrap_lower_bound(ratios), "the same ratios give the same bound"
    assert bootstrap_lower_bound(ratios, confidence=0.5) > bound


def test_equal_ratios_leave_nothing_open_and_one_ratio_everything() -> None:
    assert bootstrap_lower_bound([0.98] * 5) == pytest.approx(0.98)
    assert bootstrap_lower_bound([0.98]) == 0.0


def test_interval_of_a_ratio_of_sums_is_near_the_one_that_scipy_finds() -> None:
    draws = np.random.default_rng(5)
    below = draws.uniform(1.0, 4.0, size=25)
    above = below * draws.uniform(2.0, 5.0, size=25)
    reference = bootstrap(
        (above, below),
        lambda left, right, axis=-1: left.sum(axis=axis) / right.sum(axis=axis),
        paired=True,
        confidence_level=0.95,
        method="percentile",
        rng=1,
    ).confidence_interval
    interval = bootstrap_ratio_interval(list(above), list(below))
    assert interval == pytest.approx((reference.low, reference.high), abs=0.03)
    assert interval == bootstrap_ratio_interval(list(above), list(below))
    assert interval[0] < above.sum() / below.sum() < interval[1]


def test_a_ratio_of_one_case_leaves_everything_open() -> None:
    assert bootstrap_ratio_interval([3.0], [1.0]) == (0.0, float("inf"))
    assert bootstrap_ratio_interval([3.0, 6.0], [1.0, 2.0]) == pytest.approx((3.0, 3.0))
