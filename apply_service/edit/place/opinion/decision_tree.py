"""A decision tree in its stored form and in the form for walking down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec


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


# A leaf's value, or the feature, the threshold and the left and right child of an inner node.
Node: TypeAlias = "float | tuple[int, float, Node, Node]"


def node_of(tree: Tree, number: int) -> Node:
    """The node `number` of a tree with all that is below it, to be walked down quickly."""
    if number < 0:
        return tree.values[-1 - number]
    left, right = (node_of(tree, child) for child in (tree.lefts[number], tree.rights[number]))
    return tree.features[number], tree.thresholds[number], left, right


def value_for(node: Node, row: Sequence[float]) -> float:
    """The value of the leaf that a row reaches."""
    while isinstance(node, tuple):
        feature, threshold, left, right = node
        node = right if row[feature] > threshold else left
    return node
