"""The weights of a ranking of placements, fitted to real edits.

`PYTHONPATH=tests python -m oracles.fit_placement_ranking build/cases/train.jsonl` fits them: the
placement that makes the true result is to be likely among all those of its segment. A sum of
weighted features is therefore the logarithm of an odds.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.placement_features import FEATURES

FEATURE_WEIGHTS = {
    "evidence": 3.8,
    "is_idle": -2.3,
    "is_open_before": -2.4,
    "is_open_after": -1.4,
    "num_replaced": -0.8,
    "num_lost_closed": -0.7,
    "num_lost_open": -1.1,
    "num_kept": -1.5,
    "num_moved": -1.7,
    "num_stale": -1.5,
    "num_doubled_definitions": -1.0,
    "is_unbalanced": -3.4,
    "num_odd_indents": -2.0,
    "likeness": 2.1,
    "is_kin_after": -1.1,
    "more_blanks": 1.5,
}
_WEIGHTS = tuple(FEATURE_WEIGHTS[name] for name in FEATURES)


def weight_of(features: Sequence[float]) -> float:
    """How well a placement with these features fits, as the logarithm of an odds."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
