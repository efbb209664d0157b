"""Decision trees that correct the weights of a segment's placements by how these compare.

`PYTHONPATH=tests python -m oracles.fit_placement_trees build/cases/train.jsonl` fits them to real
edits and writes `placement_trees.json`: boosted trees whose sum, added to the weights, makes the
true placement as likely as can be among all of its segment. So corrected weights are logarithms of
odds as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from apply_service.edit.placement import Placement
from apply_service.edit.placement_layer import LAYER_FEATURES, layer_features

TREES_PATH = Path(__file__).with_name("placement_trees.json")
MAX_LEAVES = 16
MAX_HEAD_GAIN = 3.0


class Tree(msgspec.Struct, frozen=True):
    """One decision tree; its leaves are numbered from left to right.

    A node sends what is above its threshold to the right. `masks[i]` has a bit for every leaf that
    can still be reached then, and `values` has what each leaf adds.
    """

    features: list[int]
    thresholds: list[float]
    masks: list[int]
    values: list[float]


class TreeFile(msgspec.Struct, frozen=True):
    """The trees as they are stored, with the names of the features they were fitted to."""

    features: list[str]
    trees: list[Tree]


@dataclass(frozen=True, slots=True)
class PlacementTrees:
    """All trees as arrays, padded to equal sizes with nodes that nothing is above.

    Evaluated as QuickScorer does (Lucchese et al., 2015): every node that sends a row to the right
    takes away the leaves on its left, and the leftmost leaf that is left is the one.
    """

    features: NDArray[np.int64]  # [num_trees, max_nodes]
    thresholds: NDArray[np.float64]  # [num_trees, max_nodes]
    masks: NDArray[np.uint16]  # [num_trees, max_nodes]
    values: NDArray[np.float64]  # [num_trees, MAX_LEAVES]

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> PlacementTrees:
        """The arrays of some trees of at most `MAX_LEAVES` leaves."""
        shape = (len(trees), max(len(tree.features) for tree in trees))
        found = cls(
            np.zeros(shape, np.int64),
            np.full(shape, np.inf),
            np.full(shape, 2**MAX_LEAVES - 1, np.uint16),
            np.zeros((len(trees), MAX_LEAVES)),
        )
        for row, tree in enumerate(trees):
            size = len(tree.features)
            found.features[row, :size] = tree.features
            found.thresholds[row, :size] = tree.thresholds
            found.masks[row, :size] = tree.masks
            found.values[row, : len(tree.values)] = tree.values
        return found

    def sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the trees add up to for each row  # [num_rows, num_features] -> [num_rows]"""
        is_right = rows[:, self.features] > self.thresholds
        kept = np.where(is_right, self.masks, np.uint16(2**MAX_LEAVES - 1))
        leaves = np.bitwise_and.reduce(kept, axis=2).astype(np.int64)
        leaf = np.log2(leaves & -leaves).astype(np.int64)  # [num_rows, num_trees]
        chosen = np.take_along_axis(self.values[None], leaf[:, :, None], axis=2)
        return np.asarray(chosen.sum(axis=(1, 2)), np.float64)


def corrected(placements: Sequence[Placement], lines: Sequence[str]) -> list[Placement]:
    """The placements of a segment, best first, with the trees' say in their weights.

    Those of which no features are known come back as they are. Compared with the heaviest one, what
    takes the head of the file gains `MAX_HEAD_GAIN` at most: updates often begin with the header of
    a class and no marker before it, and mean nothing by that.
    """
    if len(placements) < 2 or not all(one.features for one in placements):
        return list(placements)
    sums = load_trees().sums(layer_features(placements, lines)).tolist()
    best = max(range(len(placements)), key=lambda at: placements[at].weight)
    heavier = []
    for one, more in zip(placements, sums, strict=True):
        if one.start == 0 < placements[best].start:
            more = min(more, sums[best] + MAX_HEAD_GAIN)
        heavier.append(replace(one, weight=one.weight + more))
    return sorted(heavier, key=lambda one: (-one.weight, one.start, one.end))


@cache
def load_trees() -> PlacementTrees:
    """The trees that come with the service; ValueError if they were fitted to other features."""
    stored = msgspec.json.decode(TREES_PATH.read_bytes(), type=TreeFile)
    if stored.features != list(LAYER_FEATURES):
        raise ValueError(f"{TREES_PATH} was fitted to other features; fit the trees again")
    return PlacementTrees.of(stored.trees)
