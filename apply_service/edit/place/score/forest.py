"""Decision trees side by side, for many rows of features at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.features.feature import Rows

MAX_LEAVES = 32
# Rows that are looked at together: what is known of their nodes stays in the processor's cache.
ROWS_AT_ONCE = 128


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
    """Trees of at most 32 leaves each, as bits (QuickScorer; Lucchese et al., SIGIR 2015).

    All nodes are compared at once. A node that sends a row to the right rules out the leaves on its
    left; of the leaves that are left in a tree the first one is the row's.

    Raises ValueError for a tree with more leaves.
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        features: list[int] = []
        thresholds: list[float] = []
        ruled_out: list[int] = []
        roots: list[int] = []
        self._values = np.zeros((len(trees), MAX_LEAVES))
        for number, tree in enumerate(trees):
            if len(tree.values) > MAX_LEAVES:
                raise ValueError(f"a tree has {len(tree.values)} leaves; at most {MAX_LEAVES} fit")
            leaves, bits = _leaves_of(tree)
            roots.append(len(features))
            # A tree that is one leaf still has a node, which rules nothing out.
            features += tree.features or [0]
            thresholds += tree.thresholds or [0.0]
            ruled_out += bits or [0]
            self._values[number, : len(leaves)] = [tree.values[leaf] for leaf in leaves]
        self._features = np.array(features, np.intp)
        self._thresholds = _floors(np.array(thresholds))[:, None]
        self._ruled_out = np.array(ruled_out, np.uint32)[:, None]
        self._roots = np.array(roots, np.intp)
        self._trees = np.arange(len(trees))[:, None]

    def sums_of(self, rows: Rows) -> NDArray[np.float64]:
        """What all trees add to each of `[num_rows, num_features]`."""
        sums = np.zeros(len(rows))
        columns = np.ascontiguousarray(rows.T, np.float32)
        for start in range(0, len(rows) if len(self._roots) else 0, ROWS_AT_ONCE):
            chosen = columns[:, start : start + ROWS_AT_ONCE]
            is_right = chosen[self._features] > self._thresholds
            found = np.bitwise_or.reduceat(is_right * self._ruled_out, self._roots, axis=0)
            lowest = ~found & (found + np.uint32(1))
            leaves = np.frexp(lowest)[1] - 1
            sums[start : start + ROWS_AT_ONCE] = self._values[self._trees, leaves].sum(axis=0)
        return sums


def _leaves_of(tree: Tree) -> tuple[list[int], list[int]]:
    """The leaves from left to right, and for each node the bits of those on its left."""
    leaves: list[int] = []
    bits = [0] * len(tree.features)
    # A node is left once its left side is known.
    todo: list[tuple[int, int]] = [(0, -1) if tree.features else (-1, -1)]
    while todo:
        node, first = todo.pop()
        if node < 0:
            leaves.append(-1 - node)
        elif first < 0:
            todo += [(node, len(leaves)), (tree.lefts[node], -1)]
        else:
            bits[node] = (1 << len(leaves)) - (1 << first)
            todo.append((tree.rights[node], -1))
    return leaves, bits


def _floors(thresholds: NDArray[np.float64]) -> Rows:
    """The greatest numbers of 32 bits that are not above: numbers of 32 bits compare alike."""
    floors = thresholds.astype(np.float32)
    is_above = floors.astype(np.float64) > thresholds
    return np.where(is_above, np.nextafter(floors, np.float32(-np.inf)), floors)
