"""Fits the scores of `edit/place/score`: `python -m training.fit_merges --out FILE`.

Every score is fitted to what the one before it has not seen (two folds, edits of one package or
file in one fold): candidates by themselves, candidates behind others, whole merges, and how certain
the first merge is. What is written then is fitted to all cases; but for generated lines without a
place, which are counted alone: certainty learns from them to doubt a line that was changed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize_scalar

from apply_service.edit.place.features.candidate_features import CANDIDATE_FEATURES
from apply_service.edit.place.features.certainty_features import (
    CERTAINTY_FEATURES,
    CertaintyView,
)
from apply_service.edit.place.features.feature import Rows, rows_of_views
from apply_service.edit.place.features.merge_features import MERGE_FEATURES
from apply_service.edit.place.features.step_features import STEP_FEATURES
from apply_service.edit.place.merge import MIN_CERTAINTY
from apply_service.edit.place.score.ranked_merges import MAX_RANKED
from apply_service.edit.place.score.tree_score import MergeScores, TreeScore
from apply_service.evaluate.cases.case_file import Case, read_cases
from training.ablation import candidate_ablation, merge_ablation
from training.generated.clones import clone_cases
from training.generated.definitions import definition_cases
from training.generated.sloppy import sloppy_cases
from training.generated.small_files import small_file_cases
from training.generated.wraps import wrapped_cases
from training.merges.examples import (
    NUM_FOLDS,
    NUM_SMALL_FOLDS,
    ExamplePool,
    Examples,
    MergedCase,
)
from training.merges.scores import fit, shares_of

ROOT = Path(__file__).parents[1]
FIT_FILES = (
    "training/cases/fitting_agent_edits.jsonl.gz",
    "tests/cases/later_agent_edits.jsonl.gz",
    "tests/cases/agent_edits.jsonl.gz",
    "tests/cases/agent_written.jsonl.gz",
    "tests/cases/further_agent_edits.jsonl.gz",
)
NUM_WRAPS, NUM_SLOPPY, NUM_DEFINITIONS, NUM_SMALL, NUM_CLONES = 300, 900, 1250, 600, 600
NUM_COMMITS = 1500
NUM_TREES = {"candidate": 300, "step": 200, "merge": 250, "certainty": 120}
# Merges and certainty have few cases; candidates and steps have rows enough.
NUM_FORESTS = 3
MERGE_PARAMETERS = {
    "learning_rate": 0.05,
    "num_leaves": 15,
    "feature_fraction": 0.5,
    "lambda_l2": 3.0,
    "lambdarank_truncation_level": 8,
    "min_data_in_leaf": 60,
}
# The certainty rises, or falls, with these features if nothing else changes.
RISES_WITH = (
    "first_score",
    "rival_gap",
    "first_share",
    "score",
    "least_step",
    "least_local",
    "least_evidence_share",
)
FALLS_WITH = ("num_near", "most_num_rivals")
CERTAINTY_PARAMETERS = {
    "learning_rate": 0.05,
    "num_leaves": 7,
    "min_data_in_leaf": 25,
    "feature_fraction": 0.3,
    "lambda_l2": 5.0,
    "monotone_constraints_method": "advanced",
    "monotone_constraints": [
        (name in RISES_WITH) - (name in FALLS_WITH) for name in CERTAINTY_FEATURES.names
    ],
}
# Cases whose writer had not seen the rules count so often: their candidates, and their merges.
BLIND_WEIGHT, BLIND_MERGE_WEIGHT = 5.0, 9.0


class RankedCase:
    """The merges of a case in order: the certainty row of the first, and whether it is right."""

    def __init__(self, case: MergedCase, merge: TreeScore) -> None:
        self.case = case
        scores = merge(case.rows)
        order = np.argsort(-scores, kind="stable")
        self.is_right = case.is_right[order[0]] and not case.must_refuse
        self.order = [int(one) for one in order]
        self.scores = scores[order]
        best = [float(scores[one]) for one in order[:MAX_RANKED]]
        view = CertaintyView(scores=best, rows=case.rows[order[:2]])
        self.row = rows_of_views(CERTAINTY_FEATURES, [view])[0]


def cross_fit(examples: Examples, names: Sequence[str], num_trees: int) -> list[TreeScore]:
    """A score for each fold that has not seen it, and last one that has seen all."""
    found: list[TreeScore] = []
    for fold in range(NUM_FOLDS + 1):
        one = examples.folds != fold
        found.append(
            fit(
                examples.rows[one],
                examples.is_right[one],
                examples.groups[one],
                examples.weights[one],
                names,
                num_trees=num_trees,
            )
        )
    return found


def fit_merge_scores(cases: Sequence[MergedCase]) -> list[TreeScore]:
    """The scores of whole merges, by fold and for all."""
    found: list[TreeScore] = []
    for fold in range(NUM_FOLDS + 1):
        chosen = [
            case
            for case in cases
            if case.fold != fold and any(case.is_right) and not case.must_refuse
        ]
        rows = np.concatenate([case.rows for case in chosen])
        right = np.concatenate([np.array(case.is_right) for case in chosen])
        groups = np.concatenate(
            [np.full(len(case.rows), number) for number, case in enumerate(chosen)]
        )
        weights = np.concatenate([np.full(len(case.rows), case.weight) for case in chosen])
        found.append(
            fit(
                rows,
                right,
                groups,
                weights,
                MERGE_FEATURES.names,
                num_trees=NUM_TREES["merge"],
                ranks=True,
                parameters=MERGE_PARAMETERS,
                num_forests=NUM_FORESTS,
            )
        )
    return found


def fit_scale(ranked: Sequence[RankedCase]) -> float:
    """By how much scores are multiplied to be log odds: the right merge is then likeliest."""
    known = []
    for one in ranked:
        right = [place for place, at in enumerate(one.order) if one.case.is_right[at]]
        if right and not one.case.must_refuse:
            known.append((one.scores, right, one.case.weight))

    def surprise(scale: float) -> float:
        gains = (
            weight
            * (np.logaddexp.reduce(scale * scores) - np.logaddexp.reduce(scale * scores[right]))
            for scores, right, weight in known
        )
        return float(sum(gains))

    found = minimize_scalar(surprise, bounds=(0.05, 5.0), method="bounded")
    return float(found.x)


def fit_certainty(
    ranked: Sequence[RankedCase],
) -> tuple[TreeScore, list[tuple[float, float]], dict[str, tuple[float, bool]]]:
    """The certainty of the first merge; and, by case, its probability unseen and the truth.

    Small folds, because the merge scores of the two folds are on scales of their own: what a case
    is judged by has then seen both.
    """
    cases = [one.case for one in ranked]
    rows: Rows = np.stack([one.row for one in ranked])
    right = np.array([one.is_right for one in ranked])
    folds = np.array([case.small_fold for case in cases])
    weights = np.array([case.weight for case in cases])

    def fitted(chosen: NDArray[np.bool_]) -> TreeScore:
        return fit(
            rows[chosen],
            right[chosen],
            np.arange(int(chosen.sum())),
            weights[chosen],
            CERTAINTY_FEATURES.names,
            num_trees=NUM_TREES["certainty"],
            parameters=CERTAINTY_PARAMETERS,
            num_forests=NUM_FORESTS,
        )

    unseen = np.zeros(len(cases))
    for fold in range(NUM_SMALL_FOLDS):
        unseen[folds == fold] = fitted(folds != fold)(rows[folds == fold])
    order = np.argsort(unseen, kind="stable")
    shares = isotonic_regression(right[order].astype(float), weights=weights[order]).x
    steps = _steps(unseen[order], shares)
    scores, values = zip(*steps, strict=True)
    probabilities = np.interp(unseen, scores, values)
    found = {
        case.case_id: (float(probability), bool(is_right))
        for case, probability, is_right in zip(cases, probabilities, right, strict=True)
    }
    return fitted(folds >= 0), steps, found


def _steps(scores: NDArray[np.float64], shares: NDArray[np.float64]) -> list[tuple[float, float]]:
    """The middle of each run of equal shares."""
    steps: list[tuple[float, float]] = []
    start = 0
    for place in range(1, len(scores) + 1):
        if place == len(scores) or shares[place] != shares[start]:
            middle = float(scores[start:place].mean())
            steps.append((round(middle, 5), round(float(shares[start]), 5)))
            start = place
    return steps


def main() -> int:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blind", type=Path, default=ROOT / "build/blind")
    parser.add_argument("--commits", type=Path, default=ROOT / "build/commits/train.jsonl")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--ablate", action="store_true", help="try without each feature group")
    chosen = parser.parse_args()
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:6.0f} s  {text}", flush=True)

    if chosen.processes < 1:
        print(f"{chosen.processes} processes read no cases; give at least 1")
        return 1
    if not chosen.out.absolute().parent.is_dir():
        print(f"{chosen.out}: its folder is not there; make it, or name another file")
        return 1
    blind_files = sorted(chosen.blind.glob("fit_*.jsonl"))
    if not blind_files:
        print(f"{chosen.blind} has no fit_*.jsonl; run `python -m training.blind build`")
        return 1
    if not chosen.commits.is_file():
        print(f"{chosen.commits} is not there; run `make merge-scores`, which makes it")
        return 1
    cases: list[Case] = [case for name in FIT_FILES for case in read_cases(ROOT / name)]
    blind_cases = [case for path in blind_files for case in read_cases(path)]
    made = [
        *wrapped_cases(cases + blind_cases, NUM_WRAPS),
        *sloppy_cases(cases, NUM_SLOPPY),
        *definition_cases(cases + blind_cases, NUM_DEFINITIONS),
        *small_file_cases(cases + blind_cases, NUM_SMALL),
        *clone_cases(cases + blind_cases, NUM_CLONES),
    ]
    commits = islice(read_cases(chosen.commits), NUM_COMMITS)
    cases += [*blind_cases, *made, *commits]
    digest = hashlib.sha256(msgspec.json.encode(cases)).hexdigest()
    blind = frozenset(case.id for case in blind_cases)
    weights = [BLIND_WEIGHT if case.id in blind else 1.0 for case in cases]
    pool = ExamplePool(cases, weights, chosen.processes)
    say(f"{pool.num_cases} of {len(cases)} cases read")
    examples = pool.candidates()
    candidates = cross_fit(examples, CANDIDATE_FEATURES.names, NUM_TREES["candidate"])
    say("candidates fitted")
    steps = cross_fit(pool.steps(candidates), STEP_FEATURES.names, NUM_TREES["step"])
    say("steps fitted")
    merged = [case for case in pool.merged(candidates, steps) if len(case.rows)]
    for case in merged:
        case.weight = BLIND_MERGE_WEIGHT if case.case_id in blind else 1.0
    merges = fit_merge_scores(merged)
    ranked = [RankedCase(case, merges[case.fold]) for case in merged]
    say("merges fitted")
    placeless = frozenset(case.id for case in made if case.must_refuse)
    asked = [one for one in ranked if one.case.case_id in placeless]
    ranked = [one for one in ranked if one.case.case_id not in placeless]
    certainty, certainty_steps, found = fit_certainty(ranked)
    scores = MergeScores(
        data_sha256=digest,
        candidate=candidates[-1],
        step=steps[-1],
        merge=merges[-1],
        certainty=certainty,
        scale=fit_scale(ranked),
        certainty_steps=certainty_steps,
    )
    stored = msgspec.msgpack.encode(scores)
    chosen.out.write_bytes(stored)
    say(f"{len(stored)} bytes in {chosen.out}")
    for name, part in (("blind", blind), ("other", frozenset(found) - blind)):
        report(name, [one for one in ranked if one.case.case_id in part], found)
    if asked:
        raw = certainty(np.stack([one.row for one in asked]))
        borders, values = zip(*certainty_steps, strict=True)
        probabilities = np.interp(raw, borders, values)
        num_sure = int((probabilities >= MIN_CERTAINTY).sum())
        print(f"lines without a place: {num_sure} of {len(asked)} certain at {MIN_CERTAINTY}")
    for name in ("candidate", "step", "merge", "certainty"):
        shares = shares_of(getattr(scores, name))
        print(f"{name}: " + ", ".join(f"{one} {shares[one]:.1%}" for one in shares))
    if chosen.ablate:
        names, num_trees = CANDIDATE_FEATURES.names, NUM_TREES["candidate"]
        learnt = [one.case for one in ranked]
        for line in chain(
            candidate_ablation(examples, names, lambda some: cross_fit(some, names, num_trees)),
            merge_ablation(learnt, lambda some: judged(some, blind)),
        ):
            print(line, flush=True)
    return 0


def judged(cases: Sequence[MergedCase], blind: Collection[str]) -> str:
    """How good merges and certainties are that are fitted to some cases, on their blind ones."""
    merges = fit_merge_scores(cases)
    ranked = [RankedCase(case, merges[case.fold]) for case in cases]
    _, _, found = fit_certainty(ranked)
    seen = [one for one in ranked if one.case.case_id in blind]
    first = np.mean([one.is_right for one in seen if not one.case.must_refuse])
    sure = [found[one.case.case_id] for one in seen]
    right = [is_right for certainty, is_right in sure if certainty >= MIN_CERTAINTY]
    return (
        f"blind first {first:.1%}, at {MIN_CERTAINTY} {sum(right)} right and"
        f" {len(right) - sum(right)} wrong of {len(seen)}"
    )


def report(
    name: str, ranked: Sequence[RankedCase], found: Mapping[str, tuple[float, bool]]
) -> None:
    """Print how often the right text was among the merges, first and certain; unseen."""
    asked = [one for one in ranked if not one.case.must_refuse]
    among_all = np.mean([one.case.has_truth for one in asked])
    print(f"{name}: {len(asked)} with an answer, among all candidates in {among_all:.1%}")
    for limit in (1, 5, 8):
        share = np.mean([any(one.case.is_right[at] for at in one.order[:limit]) for one in asked])
        print(f"{name}: right among {limit}: {share:.1%}")
    exact = np.mean([one.case.is_whole[one.order[0]] for one in asked])
    print(f"{name}: first to the byte: {exact:.1%}")
    for threshold in (0.8, 0.9, 0.95, 0.97, 0.98, 0.99):
        known = [found[one.case.case_id] for one in ranked]
        sure = [one for one in known if one[0] >= threshold]
        right = sum(is_right for _, is_right in sure)
        print(
            f"{name}: at {threshold}: {right} right and {len(sure) - right} wrong of {len(known)}"
        )


if __name__ == "__main__":
    sys.exit(main())
