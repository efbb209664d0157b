"""Fits the trees: `PYTHONPATH=tests python -m oracles.fit_placement_trees TRAIN --check DEV`.

Plans every case, and other updates for the same edit, without the trees, and asks which placement
of each segment makes the true result. Where the first placement is not certain, boosted trees
(LightGBM, the softmax over a segment's placements as objective) learn what to add to the weights.
As agents forget markers, every fourth of the other updates has lost the one at its start or end.
With `--out` they are written; LightGBM must be installed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lightgbm
import msgspec
import numpy as np
from numpy.typing import NDArray
from oracles.verdict_rates import JudgedCase

from apply_service.edit import lazy_placements
from apply_service.edit.markers import is_marker
from apply_service.edit.placement import Placement
from apply_service.edit.placement_layer import LAYER_FEATURES, layer_features
from apply_service.edit.placement_trees import PlacementTrees, Tree, contenders
from apply_service.edit.text_file import TextFile
from training.case_file import TrainingCase, read_training_cases
from training.served import rewrite

NUM_TREES = 250
SETTINGS = {
    "objective": "none",
    "learning_rate": 0.12,
    "num_leaves": 31,
    "min_data_in_leaf": 30,
    "feature_fraction": 0.5,
    "lambda_l2": 10.0,
    "max_bin": 63,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
    "verbosity": -1,
}
FORGETFUL_SHARE = 0.25
# Significant digits of a threshold and of a leaf that are kept; a threshold may be just below 0.
_NUM_DIGITS = 9
_ERRORS_ALLOWED = (2, 5, 12)

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Layers:
    """Rows of many layers one after another; `sizes` rows belong together."""

    rows: Vector  # [num_rows, num_features]
    weights: Vector  # [num_rows]
    is_true: NDArray[np.bool_]  # [num_rows]
    sizes: NDArray[np.int64]  # [num_layers]

    @classmethod
    def of(cls, found: Sequence[tuple[Vector, Vector, int]]) -> Layers:
        """Of the rows, weights and true placement of each layer."""
        sizes = np.array([len(weights) for _, weights, _ in found])
        is_true = np.zeros(sizes.sum(), bool)
        starts = accumulate(sizes[:-1].tolist(), initial=0)
        is_true[[start + truth for start, (_, _, truth) in zip(starts, found, strict=True)]] = True
        return cls(
            np.vstack([rows for rows, _, _ in found]),
            np.concatenate([weights for _, weights, _ in found]),
            is_true,
            sizes,
        )

    def likelihoods(self, scores: Vector) -> Vector:
        """The softmax of scores within each layer."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        layer = np.repeat(np.arange(len(self.sizes)), self.sizes)
        odds = np.exp(scores - np.maximum.reduceat(scores, starts)[layer])
        found: Vector = odds / np.add.reduceat(odds, starts)[layer]
        return found

    def report(self, scores: Vector) -> str:
        """How often the true placement is the likeliest, the surprise, and what can be trusted."""
        likelihoods = self.likelihoods(scores)
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        highest = np.maximum.reduceat(likelihoods, starts)
        of_truth = likelihoods[self.is_true]
        is_first = of_truth >= highest
        num_wrong = np.cumsum(~is_first[np.argsort(-highest)])
        trusted = ", ".join(
            f"{np.searchsorted(num_wrong, errors, side='right') / len(is_first):.1%}"
            f" with {errors} wrong"
            for errors in _ERRORS_ALLOWED
        )
        surprise = -np.log(np.maximum(of_truth, 1e-300)).mean()
        return f"first {is_first.mean():.2%}, loss {surprise:.4f}; trusted {trusted}"


def layers(path: Path, *, num_updates: int, every: int, num_processes: int = 1) -> Layers:
    """The layers that are open in the cases of a file, weighed without the trees."""
    cases = islice(read_training_cases(path), 0, None, every)
    with (
        patch.multiple(lazy_placements, corrected=_as_they_are, confirmed=_as_they_are),
        multiprocessing.get_context("fork").Pool(num_processes) as pool,
    ):
        found = pool.imap(partial(_layers_of, num_updates), cases, chunksize=8)
        return Layers.of([layer for of_case in found for layer in of_case])


def _as_they_are(placements: Sequence[Placement], lines: Sequence[str]) -> list[Placement]:
    return list(placements)


def _layers_of(num_updates: int, case: TrainingCase) -> list[tuple[Vector, Vector, int]]:
    return [
        layer
        for number in range(num_updates)
        if (written := rewrite(case, number)) is not None
        for layer in _open_layers(written, _update_of(written, number))
    ]


def _update_of(case: TrainingCase, number: int) -> str:
    """The update of a rewritten case, every fourth of them without its first or last marker."""
    rng = random.Random(f"marker:{number}:{case.id}")
    if not number or rng.random() > FORGETFUL_SHARE:
        return case.update
    lines = case.update.splitlines()
    border, rest = (lines[0], lines[1:]) if rng.random() < 0.5 else (lines[-1], lines[:-1])
    return "\n".join(rest) + "\n" if is_marker(border) and rest else case.update


def _open_layers(case: TrainingCase, update: str) -> Iterator[tuple[Vector, Vector, int]]:
    judged = JudgedCase(case.original, update, case.path)
    if judged.plan is None:
        return
    original = TextFile.from_text(case.original).lines
    truth = judged.plan.accepts(list(TextFile.from_text(case.expected).lines))
    for placement in () if truth is None else truth.placements:
        layer = judged.plan.candidates[placement.segment]
        if layer[0].is_certain or not all(one.features for one in layer):
            continue
        layer = contenders(layer)
        if len(layer) > 1 and placement in layer:
            weights = np.array([one.weight for one in layer])
            rows = np.array(layer_features(layer, original))
            yield rows, weights, layer.index(placement)


def fit(found: Layers, *, num_trees: int = NUM_TREES) -> lightgbm.Booster:
    """The trees with the least surprise."""
    data = lightgbm.Dataset(
        found.rows, label=found.is_true, init_score=found.weights, free_raw_data=False
    )

    def objective(scores: Vector, _: object) -> tuple[Vector, Vector]:
        likelihoods = found.likelihoods(scores)
        curvature = np.maximum(2 * likelihoods * (1 - likelihoods), 1e-6)
        return likelihoods - found.is_true, curvature

    booster = lightgbm.Booster(SETTINGS, data)
    for _ in range(num_trees):
        booster.update(fobj=objective)
    return booster


def stored(booster: lightgbm.Booster) -> PlacementTrees:
    """The trees as the service keeps them."""
    trees = [_tree_of(one["tree_structure"]) for one in booster.dump_model()["tree_info"]]
    return PlacementTrees(list(LAYER_FEATURES), trees)


def _tree_of(root: Mapping[str, Any]) -> Tree:
    tree = Tree([], [], [], [], [])

    def add(node: Mapping[str, Any]) -> int:
        """The number of a node or leaf, once it and all below it are in the tree."""
        if "leaf_value" in node:
            tree.values.append(_shortened(node["leaf_value"]))
            return -len(tree.values)
        number = len(tree.features)
        tree.features.append(node["split_feature"])
        tree.thresholds.append(_shortened(node["threshold"]))
        tree.lefts.append(0)
        tree.rights.append(0)
        tree.lefts[number] = add(node["left_child"])
        tree.rights[number] = add(node["right_child"])
        return number

    add(root)
    return tree


def _shortened(value: float) -> float:
    return float(f"{value:.{_NUM_DIGITS}g}")


def main() -> None:
    """Read the command line, fit, say what the trees are worth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--check", type=Path, nargs="*", default=[], metavar="JSONL")
    parser.add_argument("--updates", type=int, default=4, help="updates for each edit")
    parser.add_argument("--every", type=int, default=1, help="take each n-th case")
    parser.add_argument("--processes", type=int, default=1, help="that plan the cases")
    parser.add_argument("--out", type=Path, default=None, help="where the trees are written")
    args = parser.parse_args()
    planned = partial(layers, every=args.every, num_processes=args.processes)
    found = planned(args.cases, num_updates=args.updates)
    trees = stored(fit(found))
    for path in (args.cases, *args.check):
        sample = found if path == args.cases else planned(path, num_updates=1)
        print(f"{path}: {len(sample.sizes)} open layers")
        print(f"  without trees: {sample.report(sample.weights)}")
        sums = np.array([trees.sum_of(row) for row in sample.rows.tolist()])
        print(f"  with them: {sample.report(sample.weights + sums)}", flush=True)
    if args.out is not None:
        args.out.write_bytes(msgspec.json.encode(trees) + b"\n")


if __name__ == "__main__":
    main()
