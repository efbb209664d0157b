"""Figures over cases: summaries of counts, and intervals for shares and ratios."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from math import exp, fsum, log, sqrt

import numpy as np

_NUM_RESAMPLES = 10_000


def wilson_interval(successes: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of `successes` out of `total`, both ends within 0 and 1.

    `z` is the number of standard deviations: 1.96 covers 95 %. Without any trial nothing is
    known: (0, 1).
    """
    assert 0 <= successes <= total, "a share lies between none and all"
    if total == 0:
        return 0.0, 1.0
    share = successes / total
    spread = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    centre, scale = share + z * z / (2 * total), 1 + z * z / total
    low = 0.0 if successes == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if successes == total else min(1.0, (centre + spread) / scale)
    return low, high


def geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean of one or more ratios, all above 0."""
    return exp(fsum(map(log, ratios)) / len(ratios))


def bootstrap_lower_bound(ratios: Sequence[float], *, confidence: float = 0.95) -> float:
    """The bound that the true geometric mean exceeds with this confidence (percentile bootstrap).

    The same ratios give the same bound: the resampling has a fixed seed. From one ratio alone
    nothing is known, and the bound is 0.
    """
    if len(ratios) < 2:
        return 0.0
    logs = [log(ratio) for ratio in ratios]
    draws = random.Random(0)
    means = sorted(
        fsum(draws.choices(logs, k=len(logs))) / len(logs) for _ in range(_NUM_RESAMPLES)
    )
    return exp(means[int((1.0 - confidence) * _NUM_RESAMPLES)])


def bootstrap_ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], *, confidence: float = 0.95
) -> tuple[float, float]:
    """The confidence interval of the ratio of two sums over cases (percentile bootstrap).

    Entries of the same place belong to one case and are drawn together. The same figures give the
    same interval. From one case alone nothing is known: (0, infinity).
    """
    assert len(numerators) == len(denominators), "each case has both"
    count = len(numerators)
    if count < 2:
        return 0.0, float("inf")
    drawn = np.random.default_rng(0).integers(count, size=(_NUM_RESAMPLES, count))
    above, below = (np.asarray(part)[drawn].sum(axis=1) for part in (numerators, denominators))
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(above / below, (tail, 1.0 - tail))
    return float(low), float(high)


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The value below or at which `share` of sorted values lie; 0 if there are none."""
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0


def count_summary(counts: Sequence[int]) -> dict[str, float]:
    """Mean, median and p90 over cases, the largest, and all added up."""
    ordered = sorted(counts)
    return {
        "mean": sum(ordered) / max(1, len(ordered)),
        "median": nearest_rank(ordered, 0.5),
        "p90": nearest_rank(ordered, 0.9),
        "max": max(ordered, default=0),
        "all": sum(ordered),
    }
