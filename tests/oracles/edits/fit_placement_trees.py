"""Fits the trees: `python tests/oracle.py edits.fit_placement_trees TRAIN --check DEV`.

Plans every case, and other updates for the same edit, without the trees, and asks which placement
of each segment makes the true result. Where the first placement is not certain, boosted trees
(LightGBM, the softmax over a segment's placements as objective) learn what to add to the weights.
As agents forget markers, every fourth of the other updates has lost the one at its start or end.
As they are brief, there are terse updates as well. A segment whose true placement is not offered
teaches nothing; of terse updates it is printed how many do. Updates that agents wrote themselves
(`fitting_agent_edits` of `training/cases`, `agent_edits` of `tests/cases`) are few and worth the
most: each counts as `AGENT_WEIGHT` others.
Planning takes most of the time: with `--layers` what was planned of the first file is kept in a
NumPy archive, and taken from there if it exists. With `--out` the trees are written; LightGBM must
be installed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from unittest.mock import patch

import lightgbm
import msgspec
import numpy as np
from case_files import case_file
from numpy.typing import NDArray
from oracles.edits.verdict_rates import JudgedCase, share

from apply_service.edit.place import lazy_placements
from apply_service.edit.place.placement import Placement
from apply_service.edit.place.placement_layer import LAYER_FEATURES, layer_features
from apply_service.edit.place.placement_trees import PlacementTrees, contenders
from apply_service.edit.read.markers import is_marker
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case, read_cases
from snippets.written_segments import WrittenSegment
from training.case_file import TrainingCase, read_training_cases
from training.merge_scores import trees_of
from training.served import rewrite, rewrite_tersely

NUM_TREES = 150
SETTINGS = {
    "objective": "none",
    "learning_rate": 0.12,
    "num_leaves": 127,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.3,
    "lambda_l2": 30.0,
    "max_bin": 63,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
    "verbosity": -1,
}
FORGETFUL_SHARE = 0.25
AGENT_WEIGHT = 40.0
AGENT_EDITS = (case_file("fitting_agent_edits"), case_file("agent_edits"))
_CASES_PER_REPORT = 500
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

    @classmethod
    def joined(cls, parts: Sequence[Layers]) -> Layers:
        """The layers of all parts, one after another."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @classmethod
    def read(cls, path: Path) -> Layers:
        """What `write` wrote."""
        with np.load(path) as archive:
            return cls(**archive)

    def write(self, path: Path) -> None:
        """Keep all of it in a NumPy archive."""
        np.savez_compressed(path, **vars(self))

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


@dataclass(frozen=True)
class CaseLayers:
    """The open layers of one case, each as the arguments of `Layers.of`.

    Of `num_terse` segments of terse updates the planner offers `num_offered` their true placement.
    """

    found: list[tuple[Vector, Vector, int]]
    num_terse: int
    num_offered: int


def layers(
    path: Path, *, num_updates: int, num_terse: int, every: int, num_processes: int = 1
) -> Layers:
    """The layers that are open in the cases of a file, weighed without the trees.

    Prints how many segments of terse updates there are, and how many of them can teach.
    """
    cases = islice(read_training_cases(path), 0, None, every)
    with (
        patch.multiple(lazy_placements, corrected=_as_they_are, confirmed=_as_they_are),
        multiprocessing.get_context("fork").Pool(num_processes) as pool,
    ):
        of_cases = []
        plan = partial(_layers_of, num_updates, num_terse)
        for number, found in enumerate(pool.imap(plan, cases, chunksize=8), start=1):
            of_cases.append(found)
            if number % _CASES_PER_REPORT == 0:
                print(f"{path}: {number} cases planned", file=sys.stderr, flush=True)
    if num_terse:
        offered = share(sum(o.num_offered for o in of_cases), sum(o.num_terse for o in of_cases))
        print(f"{path}: terse segments with their true placement offered {offered}", flush=True)
    return Layers.of([layer for one in of_cases for layer in one.found])


def layers_as_written(path: Path) -> Layers:
    """The layers of a file's updates as they are, weighed without the trees.

    Those whose first placement is certain are among them: the trees are asked about these too.
    """
    with patch.multiple(lazy_placements, corrected=_as_they_are, confirmed=_as_they_are):
        planned = [PlannedUpdate(case, case.update) for case in read_cases(path)]
        return Layers.of([layer for one in planned for layer in one.layers(with_certain=True)])


def _as_they_are(placements: Sequence[Placement], lines: Sequence[str]) -> list[Placement]:
    return list(placements)


def _layers_of(num_updates: int, num_updates_terse: int, case: TrainingCase) -> CaseLayers:
    found: list[tuple[Vector, Vector, int]] = []
    for number in range(num_updates):
        written = rewrite(case, number)
        if written is not None:
            found += PlannedUpdate(written, _update_of(written, number)).layers()
    num_terse = num_offered = 0
    for terse in (rewrite_tersely(case, number) for number in range(num_updates_terse)):
        if terse is not None:
            written, segments = terse
            planned = PlannedUpdate(written, written.update, segments)
            found += planned.layers()
            num_terse += len(segments)
            num_offered += len(planned.truths)
    return CaseLayers(found, num_terse, num_offered)


def _update_of(case: TrainingCase, number: int) -> str:
    """The update of a rewritten case, every fourth of them without its first or last marker."""
    rng = random.Random(f"marker:{number}:{case.id}")
    if not number or rng.random() > FORGETFUL_SHARE:
        return case.update
    lines = case.update.splitlines()
    border, rest = (lines[0], lines[1:]) if rng.random() < 0.5 else (lines[-1], lines[:-1])
    return "\n".join(rest) + "\n" if is_marker(border) and rest else case.update


class PlannedUpdate:
    """An update of a case with its placements; `truths` are the true ones, as far as offered.

    Unless the writer of the update tells where its segments stand, they are those of the merge
    that makes the true result: all or none.
    """

    def __init__(
        self, case: TrainingCase | Case, update: str, segments: Sequence[WrittenSegment] = ()
    ) -> None:
        self._original = TextFile.from_text(case.original).lines
        self._plan = JudgedCase(case.original, update, case.path).plan
        self.truths: list[Placement] = []
        if self._plan is not None and len(segments) == len(self._plan.candidates):
            pairs = zip(segments, self._plan.candidates, strict=True)
            found = (self._placement_of(segment, layer) for segment, layer in pairs)
            self.truths = [one for one in found if one is not None]
        elif self._plan is not None:
            path = self._plan.accepts(list(TextFile.from_text(case.expected).lines))
            self.truths = [] if path is None else list(path.placements)

    def layers(self, *, with_certain: bool = False) -> Iterator[tuple[Vector, Vector, int]]:
        """Rows and weights of each layer, and which placement is true.

        Without `with_certain` those whose first placement is not certain.
        """
        for placement in self.truths:
            assert self._plan is not None, "there are placements"
            layer = self._plan.candidates[placement.segment]
            if layer[0].is_certain and not with_certain:
                continue
            if not all(one.features for one in layer):
                continue
            layer = contenders(layer)
            if len(layer) > 1 and placement in layer:
                weights = np.array([one.weight for one in layer])
                rows = np.array(layer_features(layer, self._original))
                yield rows, weights, layer.index(placement)

    def _placement_of(
        self, segment: WrittenSegment, layer: Sequence[Placement]
    ) -> Placement | None:
        """The heaviest placement that makes of the original what the segment is meant to make."""
        start, end = segment.old_start, segment.old_end
        for one in layer:
            low, high = min(start, one.start), max(end, one.end)
            meant = [*self._original[low:start], *segment.new_lines, *self._original[end:high]]
            made = [*self._original[low : one.start], *one.lines, *self._original[one.end : high]]
            is_elsewhere = one.end <= start or end <= one.start
            # What changes nothing makes the same everywhere.
            if made == meant and not (is_elsewhere and made == list(self._original[low:high])):
                return one
        return None


def fit(*samples: tuple[Layers, float], num_trees: int = NUM_TREES) -> lightgbm.Booster:
    """The trees with the least surprise; each sample counts as many times as its number says."""
    found = Layers.joined([layers for layers, _ in samples])
    importance = np.concatenate([np.full(len(one.weights), count) for one, count in samples])
    data = lightgbm.Dataset(
        found.rows, label=found.is_true, init_score=found.weights, free_raw_data=False
    )

    def objective(scores: Vector, _: object) -> tuple[Vector, Vector]:
        likelihoods = found.likelihoods(scores)
        curvature = np.maximum(2 * likelihoods * (1 - likelihoods), 1e-6)
        return importance * (likelihoods - found.is_true), importance * curvature

    booster = lightgbm.Booster(SETTINGS, data)
    for _ in range(num_trees):
        booster.update(fobj=objective)
    return booster


def stored(booster: lightgbm.Booster) -> PlacementTrees:
    """The trees as the service keeps them."""
    trees = trees_of(booster, num_digits=_NUM_DIGITS)
    return PlacementTrees(list(LAYER_FEATURES), trees)


def _report(name: str, sample: Layers, trees: PlacementTrees) -> None:
    print(f"{name}: {len(sample.sizes)} open layers")
    print(f"  without trees: {sample.report(sample.weights)}")
    sums = np.array(trees.sums_of(sample.rows.tolist()))
    print(f"  with them: {sample.report(sample.weights + sums)}", flush=True)


def main() -> None:
    """Read the command line, fit, say what the trees are worth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--check", type=Path, nargs="*", default=[], metavar="JSONL")
    parser.add_argument("--updates", type=int, default=4, help="updates for each edit")
    parser.add_argument("--num-terse", type=int, default=3, help="terse updates for each edit")
    parser.add_argument("--every", type=int, default=1, help="take each n-th case")
    parser.add_argument("--processes", type=int, default=1, help="that plan the cases")
    parser.add_argument("--layers", type=Path, default=None, help="file of planned cases")
    parser.add_argument(
        "--agents", type=Path, nargs="*", default=AGENT_EDITS, help="files of agents' updates"
    )
    parser.add_argument("--out", type=Path, default=None, help="where the trees are written")
    args = parser.parse_args()
    planned = partial(layers, every=args.every, num_processes=args.processes)
    if args.layers is not None and args.layers.exists():
        found = Layers.read(args.layers)
    else:
        found = planned(args.cases, num_updates=args.updates, num_terse=args.num_terse)
        if args.layers is not None:
            found.write(args.layers)
    written = [layers_as_written(path) for path in args.agents]
    trees = stored(fit((found, 1.0), *((one, AGENT_WEIGHT) for one in written)))
    _report(str(args.cases), found, trees)
    for path, one in zip(args.agents, written, strict=True):
        _report(str(path), one, trees)
    for path in args.check:
        _report(str(path), planned(path, num_updates=1, num_terse=0), trees)
        if args.num_terse:
            _report(f"{path}, terse", planned(path, num_updates=0, num_terse=1), trees)
    if args.out is not None:
        args.out.write_bytes(msgspec.json.encode(trees) + b"\n")


if __name__ == "__main__":
    main()
