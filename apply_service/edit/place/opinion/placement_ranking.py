"""The weights of a ranking of placements, fitted to real edits.

`python tests/oracle.py edits.fit_placement_ranking build/cases/train.jsonl` fits them: the
placement that makes the true result is to be likely among all those of its segment. A sum of
weighted features is therefore the logarithm of an odds.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.place.opinion.placement_features import WEIGHED_FEATURES

FEATURE_WEIGHTS = {
    "evidence": 3.49,
    "is_idle": -3.75,
    "is_open_before": -2.88,
    "is_open_after": -1.30,
    "num_replaced": -0.86,
    "num_lost_closed": -0.76,
    "num_lost_open": -2.02,
    "num_kept": -1.59,
    "num_moved": -1.76,
    "num_stale": -1.36,
    "num_doubled_definitions": -1.07,
    "is_unbalanced": -3.70,
    "num_odd_indents": -2.46,
    "likeness": 3.05,
    "is_kin_after": -1.36,
    "more_blanks": 1.94,
    "num_dangling": -1.37,
    "num_superseded": 0.93,
    "num_redeclared": -1.20,
    "num_reassigned": -0.79,
    "is_apart_from_kin": -1.54,
}
_WEIGHTS = tuple(FEATURE_WEIGHTS[name] for name in WEIGHED_FEATURES)


def weight_of(features: Sequence[float]) -> float:
    """How well a placement with these `WEIGHED_FEATURES` fits, as the logarithm of an odds."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
