"""When requests of an open loop come, whatever became of those before them."""

from __future__ import annotations

import random


def poisson_arrivals(rate: float, *, seconds: float, seed: int) -> list[float]:
    """Ascending times below `seconds`, `rate` a second on average, one at least.

    The same arguments give the same times, so that all modes get the same arrivals.
    """
    draws = random.Random(seed)
    arrivals = []
    at = draws.expovariate(rate)
    while at < seconds:
        arrivals.append(at)
        at += draws.expovariate(rate)
    return arrivals or [0.0]
