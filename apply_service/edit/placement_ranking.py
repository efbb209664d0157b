"""The weights of a ranking of placements, fitted to real edits.

`PYTHONPATH=tests python -m oracles.fit_placement_ranking build/cases/train.jsonl` fits them: the
placement that makes the true result is to be likely among all those of its segment. A sum of
weighted features is therefore the logarithm of an odds.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.placement_features import FEATURES

FEATURE_WEIGHTS = {
    "evidence": 3.71,
    "is_idle": -4.85,
    "is_open_before": -2.52,
    "is_open_after": -1.29,
    "num_replaced": -0.93,
    "num_lost_closed": -0.75,
    "num_lost_open": -1.11,
    "num_kept": -1.56,
    "num_moved": -1.82,
    "num_stale": -1.52,
    "num_doubled_definitions": -1.18,
    "is_unbalanced": -3.71,
    "num_odd_indents": -2.22,
    "likeness": 2.16,
    "is_kin_after": -1.09,
    "more_blanks": 2.15,
}
_WEIGHTS = tuple(FEATURE_WEIGHTS[name] for name in FEATURES)


def weight_of(features: Sequence[float]) -> float:
    """How well a placement with these features fits, as the logarithm of an odds."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
