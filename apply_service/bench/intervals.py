"""How far a measured share may be from the true one."""

from __future__ import annotations

from math import sqrt


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
