"""Decision trees that correct the weights of a segment's placements by comparing them.

`python tests/oracle.py edits.fit_placement_trees TRAIN --out placement_trees.json` fits them
to real edits: boosted trees whose sum, added to the weights, makes the true placement as likely as
can be among all of its segment. So corrected weights are logarithms of odds as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

import msgspec
import numpy as np

from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.place.opinion.placement_features import FEATURES
from apply_service.edit.place.opinion.placement_layer import (
    LAYER_FEATURES,
    heaviest,
    layer_features,
)
from apply_service.edit.place.score.forest import Forest, Tree
from apply_service.edit.text.work_budget import spend

TREES_PATH = Path(__file__).with_name("placement_trees.json")
# In nats; see `corrected`.
MAX_HEAD_GAIN = 3.0
MAX_BEHIND = 15.0
# How likely what seems certain must be to the trees as well.
MIN_CERTAIN_SHARE = 0.97
# In nats.
DOUBTED_LEAD = 1.0
# What it takes to walk down all trees with one row.
COMPARISONS_PER_ROW = 100


class PlacementTrees(msgspec.Struct, frozen=True, dict=True):
    """The trees as they are stored, with the names of the features they were fitted to."""

    features: list[str]
    trees: list[Tree]

    def sums_of(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """What all trees add to each row of features."""
        sums: list[float] = self._forest.sums_of(np.array(rows, np.float64)).tolist()
        return sums

    @cached_property
    def _forest(self) -> Forest:
        return Forest(self.trees)


def corrected(placements: Sequence[Placement], lines: Sequence[str]) -> list[Placement]:
    """The placements of a segment, best first, with the trees' say in their weights.

    Those of which no features are known come back as they are. What is `MAX_BEHIND` behind the
    heaviest one, or has only the features that weights are made of, is not compared with it and
    stays as far behind. What takes the head of the file gains `MAX_HEAD_GAIN` on it at most:
    updates often begin with the header of a class and no marker before it, and mean nothing by
    that.
    """
    if not all(one.features for one in placements):
        return list(placements)
    near = contenders(placements)
    if len(near) < 2:
        return list(placements)
    spend(COMPARISONS_PER_ROW * len(near))
    trees = load_trees()
    sums = trees.sums_of(layer_features(near, lines))
    best = heaviest(near)
    compared = {id(one) for one in near}
    far = [one for one in placements if id(one) not in compared]
    heavier = []
    for one, more in zip([*near, *far], [*sums, *[sums[best]] * len(far)], strict=True):
        if one.start == 0 < near[best].start:
            more = min(more, sums[best] + MAX_HEAD_GAIN)
        heavier.append(replace(one, weight=one.weight + more))
    return sorted(heavier, key=lambda one: (-one.weight, one.start, one.end))


def confirmed(placements: Sequence[Placement], lines: Sequence[str]) -> list[Placement]:
    """The placements of a segment with a certain first one, after the trees may have doubted it.

    Where they give it less than `MIN_CERTAIN_SHARE` it is no longer certain. It stays the first by
    `DOUBTED_LEAD`: what seemed certain is right far more often than what the trees prefer to it.
    """
    found = corrected(placements, lines)
    first = next(one for one in found if one.is_certain)
    others = [one for one in found if one is not first]
    rivals = sum(math.exp(one.weight - first.weight) for one in others)
    if 1 / (1 + rivals) >= MIN_CERTAIN_SHARE:
        return list(placements)
    return [
        replace(first, is_certain=False),
        *(replace(one, weight=min(one.weight, first.weight - DOUBTED_LEAD)) for one in others),
    ]


def contenders(placements: Sequence[Placement]) -> list[Placement]:
    """Those at most `MAX_BEHIND` lighter than the heaviest one, with all their features."""
    limit = max((one.weight for one in placements), default=0.0) - MAX_BEHIND
    return [one for one in placements if one.weight >= limit and len(one.features) == len(FEATURES)]


@cache
def load_trees() -> PlacementTrees:
    """The trees that come with the service; ValueError if they were fitted to other features."""
    trees = msgspec.json.decode(TREES_PATH.read_bytes(), type=PlacementTrees)
    if trees.features != list(LAYER_FEATURES):
        raise ValueError(f"{TREES_PATH} was fitted to other features; fit the trees again")
    return trees
