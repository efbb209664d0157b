"""Fits the ranking: `python tests/oracle.py edits.fit_placement_ranking CASES.jsonl`.

Plans every case and asks which placement of each segment makes the true result. The weights make
that one as likely as they can among all placements of its segment (a conditional logit with a
little pull to zero), by Newton's method. `--check` also says how the weights do on other cases.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from oracles.edits.verdict_rates import JudgedCase

from apply_service.edit.place.placement_features import WEIGHED_FEATURES
from apply_service.edit.place.placement_ranking import FEATURE_WEIGHTS
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import read_cases

PULL = 1.0
MAX_STEPS = 30
MIN_GAIN = 1e-3

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """The `features [num_placements, num_features]` of one segment, and its true placement."""

    features: Vector
    truth: int

    def likelihoods(self, weights: Vector) -> Vector:
        """How likely each placement is."""
        scores = self.features @ weights
        odds = np.exp(scores - scores.max())
        likelihoods: Vector = odds / odds.sum()
        return likelihoods


def choices(path: Path, *, every: int = 1) -> Iterator[Choice]:
    """One choice for each lazy segment whose true placement is known and not the only one."""
    for case in islice(read_cases(path), 0, None, every):
        judged = JudgedCase(case.original, case.update, case.path)
        if judged.plan is None:
            continue
        truth = judged.plan.accepts(list(TextFile.from_text(case.expected).lines))
        for placement in () if truth is None else truth.placements:
            layer = judged.plan.candidates[placement.segment]
            if len(layer) > 1 and all(one.features for one in layer):
                features = np.array([one.features[: len(WEIGHED_FEATURES)] for one in layer])
                yield Choice(features, layer.index(placement))


def loss(found: Sequence[Choice], weights: Vector) -> float:
    """The mean surprise at the true placements, in nats."""
    return float(np.mean([-np.log(one.likelihoods(weights)[one.truth]) for one in found]))


def share_first(found: Sequence[Choice], weights: Vector) -> float:
    """The share of choices in which the true placement is the likeliest."""
    return float(np.mean([one.likelihoods(weights).argmax() == one.truth for one in found]))


def fit(found: Sequence[Choice]) -> Vector:
    """The weights with the least surprise."""
    weights = np.zeros(len(WEIGHED_FEATURES))
    current = _objective(found, weights)
    for _ in range(MAX_STEPS):
        step, size = _newton_step(found, weights), 1.0
        while (value := _objective(found, weights - size * step)) > current and size > MIN_GAIN:
            size /= 2
        if current - value < MIN_GAIN:
            break
        weights, current = weights - size * step, value
    return weights


def _objective(found: Sequence[Choice], weights: Vector) -> float:
    return loss(found, weights) * len(found) + PULL / 2 * float(weights @ weights)


def _newton_step(found: Sequence[Choice], weights: Vector) -> Vector:
    gradient = PULL * weights
    curvature = PULL * np.eye(len(weights))
    for one in found:
        likelihoods = one.likelihoods(weights)
        mean = likelihoods @ one.features
        gradient = gradient + mean - one.features[one.truth]
        curvature += (one.features * likelihoods[:, None]).T @ one.features - np.outer(mean, mean)
    step: Vector = np.linalg.solve(curvature, gradient).astype(np.float64)
    return step


def main() -> None:
    """Read the command line, fit, print the weights and what they are worth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--check", type=Path, default=None, metavar="JSONL")
    parser.add_argument("--every", type=int, default=1, help="take each n-th case")
    args = parser.parse_args()
    found = list(choices(args.cases, every=args.every))
    weights = fit(found)
    for name, weight in zip(WEIGHED_FEATURES, weights, strict=True):
        print(f'    "{name}": {weight:.2f},')
    known = np.array([FEATURE_WEIGHTS[name] for name in WEIGHED_FEATURES])
    for path in filter(None, (args.cases, args.check)):
        sample = found if path == args.cases else list(choices(path, every=args.every))
        print(f"{path}: {len(sample)} choices")
        for title, vector in (("fitted", weights), ("in use", known)):
            first, surprise = share_first(sample, vector), loss(sample, vector)
            print(f"  {title}: first {first:.2%}, loss {surprise:.4f}")


if __name__ == "__main__":
    main()
