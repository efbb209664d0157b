"""Fits the scores of candidates, steps and merges with LightGBM, in the form that is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.features.feature import Rows
from apply_service.edit.place.score.forest import Tree
from apply_service.edit.place.score.tree_score import TreeScore

PARAMETERS = {
    "learning_rate": 0.06,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "verbosity": -1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 7,
}
# Digits of thresholds and values that are stored.
NUM_DIGITS = 6


def fit(
    rows: Rows,
    is_right: NDArray[np.bool_],
    groups: NDArray[np.int64],
    weights: NDArray[np.float64],
    names: Sequence[str],
    *,
    num_trees: int,
    ranks: bool = False,
    parameters: Mapping[str, Any] | None = None,
    num_forests: int = 1,
) -> TreeScore:
    """Fit trees to rows of which some are right; the rows of a group compete.

    `weights` say how much each row counts, before groups are made equal.

    The sum of the trees is the log odds that a row is right. With `ranks` it only orders the rows
    of each group (LambdaMART, Burges 2010). The mean of several forests, each from its own seed,
    depends less on chance.
    """
    order = np.argsort(groups, kind="stable")
    rows, is_right, weights = rows[order], is_right[order], weights[order]
    _, sizes = np.unique(groups, return_counts=True)
    chosen = {**PARAMETERS, "objective": "lambdarank" if ranks else "binary", **(parameters or {})}
    if not ranks:
        weights = weights / np.sqrt(np.repeat(sizes, sizes))
    data = lightgbm.Dataset(
        rows,
        is_right.astype(np.int8),
        weight=weights / weights.mean(),
        group=sizes if ranks else None,
        feature_name=list(names),
    )
    trees: list[Tree] = []
    for number in range(num_forests):
        parameters = {**chosen, "seed": PARAMETERS["seed"] + number}
        booster = lightgbm.train(parameters, data, num_boost_round=num_trees)
        trees += trees_of(booster, num_digits=NUM_DIGITS, share=1 / num_forests)
    return TreeScore(list(names), trees)


def shares_of(score: TreeScore) -> dict[str, float]:
    """How often each feature decides, as a share of all decisions."""
    counts = np.bincount(
        [feature for tree in score.trees for feature in tree.features],
        minlength=len(score.features),
    )
    return dict(zip(score.features, counts / max(counts.sum(), 1), strict=True))


def trees_of(booster: lightgbm.Booster, *, num_digits: int, share: float = 1.0) -> list[Tree]:
    """LightGBM's trees in the stored form, their numbers cut to so many digits.

    Their values are multiplied by a share.
    """
    roots = [info["tree_structure"] for info in booster.dump_model()["tree_info"]]
    return [_tree_of(root, num_digits, share) for root in roots]


def _tree_of(root: Mapping[str, Any], num_digits: int, share: float) -> Tree:
    tree = Tree([], [], [], [], [])

    def shortened(value: float) -> float:
        return float(f"{value:.{num_digits}g}")

    def add(node: Mapping[str, Any]) -> int:
        """The number of a node or leaf, once it and all below it are in the tree."""
        if "leaf_value" in node:
            tree.values.append(shortened(share * node["leaf_value"]))
            return -len(tree.values)
        number = len(tree.features)
        tree.features.append(node["split_feature"])
        tree.thresholds.append(shortened(node["threshold"]))
        tree.lefts.append(0)
        tree.rights.append(0)
        tree.lefts[number] = add(node["left_child"])
        tree.rights[number] = add(node["right_child"])
        return number

    add(root)
    return tree
