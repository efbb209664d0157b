"""Counts of forward passes and decisions over cases."""

from __future__ import annotations

import math
from collections.abc import Sequence


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
