"""The weights of a ranking of placements, fitted to real edits.

`PYTHONPATH=tests python -m oracles.fit_placement_ranking build/cases/train.jsonl` fits them: the
placement that makes the true result is to be likely among all those of its segment. A sum of
weighted features is therefore the logarithm of an odds.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.placement_features import FEATURES

FEATURE_WEIGHTS = {
    "evidence": 3.54,
    "is_idle": -3.77,
    "is_open_before": -2.90,
    "is_open_after": -1.31,
    "num_replaced": -0.84,
    "num_lost_closed": -0.76,
    "num_lost_open": -2.02,
    "num_kept": -1.51,
    "num_moved": -1.82,
    "num_stale": -1.38,
    "num_doubled_definitions": -1.18,
    "is_unbalanced": -3.72,
    "num_odd_indents": -2.48,
    "likeness": 3.11,
    "is_kin_after": -1.42,
    "more_blanks": 1.94,
    "num_dangling": -1.41,
    "num_superseded": 0.93,
    "num_redeclared": -1.19,
    "is_apart_from_kin": -1.57,
}
_WEIGHTS = tuple(FEATURE_WEIGHTS[name] for name in FEATURES)


def weight_of(features: Sequence[float]) -> float:
    """How well a placement with these features fits, as the logarithm of an odds."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
