"""Decision trees side by side, for many rows of features at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

# Steps down all trees between two looks at which rows have reached a leaf.
_STEPS = 4


class Tree(msgspec.Struct, frozen=True):
    """One decision tree.

    Node `i` sends a row whose feature `features[i]` is above `thresholds[i]` on to `rights[i]`, any
    other to `lefts[i]`: another node, or as `-1 - n` leaf `n`, which adds `values[n]`.
    """

    features: list[int]
    thresholds: list[float]
    lefts: list[int]
    rights: list[int]
    values: list[float]


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

    def sums_of(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        """What all trees add to each of `[num_rows, num_features]`, as if added one by one."""
        num_rows, num_features = rows.shape
        flat = rows.astype(np.float64).ravel()
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
        sums: NDArray[np.float64] = found.reshape(-1, num_rows).sum(axis=0)
        return sums
