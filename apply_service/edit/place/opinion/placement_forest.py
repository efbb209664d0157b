"""The trees of `placement_trees` side by side, for many rows of features at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np

from apply_service.edit.place.opinion.decision_tree import Tree

# Steps down all trees between two looks at which rows have reached a leaf.
_STEPS = 4


class Forest:
    """Every row walks down all trees in the same steps.

    Their nodes are numbered through, the leaves with them; a leaf is its own child.
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        features: list[int] = []
        thresholds: list[float] = []
        children: list[int] = []
        values: list[float] = []
        roots: list[int] = []
        for tree in trees:
            root = len(values)
            first_leaf = root + len(tree.features)
            end = first_leaf + len(tree.values)
            roots.append(root)
            features += [*tree.features, *[0] * len(tree.values)]
            thresholds += [*tree.thresholds, *[math.inf] * len(tree.values)]
            for child in chain.from_iterable(zip(tree.lefts, tree.rights, strict=True)):
                children.append(root + child if child >= 0 else first_leaf - 1 - child)
            children += [leaf for leaf in range(first_leaf, end) for _ in range(2)]
            values += [*[0.0] * len(tree.features), *tree.values]
        self._roots = np.array(roots, dtype=np.intp)
        self._features = np.array(features, dtype=np.intp)
        self._thresholds = np.array(thresholds)
        self._children = np.array(children, dtype=np.intp)
        self._values = np.array(values)

    def sums_of(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """What all trees add to each row, to the last bit as if they were added one by one."""
        num_rows, num_features = len(rows), len(rows[0])
        flat = np.array(rows, dtype=np.float64).ravel()
        nodes = np.repeat(self._roots, num_rows)
        starts = np.tile(np.arange(num_rows) * num_features, len(self._roots))
        places = np.arange(len(nodes))
        found = np.empty(len(nodes))
        while len(nodes):
            for _ in range(_STEPS):
                seen = flat.take(starts + self._features.take(nodes))
                nodes = self._children.take(2 * nodes + (seen > self._thresholds.take(nodes)))
            is_leaf = np.isinf(self._thresholds.take(nodes))
            found[places[is_leaf]] = self._values.take(nodes[is_leaf])
            nodes, starts, places = nodes[~is_leaf], starts[~is_leaf], places[~is_leaf]
        sums: list[float] = found.reshape(-1, num_rows).sum(axis=0).tolist()
        return sums
