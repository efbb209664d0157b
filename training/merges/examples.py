"""Rows of features with their truth: of candidates, of steps and of whole merges, case by case."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.way import Way
from apply_service.edit.place.features.feature import Rows
from apply_service.edit.place.features.step_features import step_rows
from apply_service.edit.place.lattice.beam import Beam, Scorer
from apply_service.edit.place.lattice.merges import MergeSource
from apply_service.edit.place.score.ranked_merges import filled
from apply_service.edit.place.score.tree_score import TreeScore
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case
from training.merges.truth import State, Truth

NUM_FOLDS = 2
# A multiple of the folds.
NUM_SMALL_FOLDS = 8
# Wrong candidates of a part that are learnt from: the likeliest, and some of the others.
NUM_LIKELY, NUM_OTHERS = 40, 24
MAX_WALKS = 3


@dataclass(slots=True)
class Examples:
    """Rows, whether each is right, which ones compete (equal `groups`), and what they weigh.

    `folds` are the parts of the data that the rows belong to.
    """

    rows: Rows
    is_right: NDArray[np.bool_]
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]
    folds: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that compete."""

    rows: Rows
    is_right: NDArray[np.bool_]
    weight: float
    fold: int


@dataclass(slots=True)
class MergedCase:
    """The merges of one case, best first, with their features; `is_whole` counts blank lines.

    `small_fold` is a part of `fold`.
    """

    case_id: str
    fold: int
    small_fold: int
    weight: float
    must_refuse: bool
    has_truth: bool
    rows: Rows
    is_right: list[bool]
    is_whole: list[bool]
    texts: list[tuple[str, ...]]


def fold_of(case: Case, num_folds: int = NUM_FOLDS) -> int:
    """The part of the data that a case belongs to: edits of one package, or file, stay together."""
    return zlib.crc32((case.package or case.original).encode()) % num_folds


class CaseExamples:
    """One case with all its beams and their truths."""

    def __init__(self, case: Case, number: int, weight: float = 1.0) -> None:
        self.case = case
        self.number = number
        self.weight = weight
        self.fold = fold_of(case)
        lines, _ = split_lines(case.original)
        update, _ = split_lines(case.update)
        self.source = MergeSource(
            lines,
            update,
            path=case.path,
            language=case.language,
            local=None,
            step=None,
            instruction=case.instruction,
        )
        self.whole = [list(split_lines(text)[0]) for text in case.results]
        self.expected = [filled(lines) for lines in self.whole]
        self.truths: list[tuple[Beam, Truth]] = []
        if not case.must_refuse or case.also:
            for _, beam in self.source.beams:
                for expected in self.expected:
                    truth = Truth(self.source.original, beam.parts, expected)
                    if truth.exists:
                        self.truths.append((beam, truth))

    def candidates(self) -> Iterator[tuple[Rows, NDArray[np.bool_]]]:
        """The candidates of each part of each reading that leads to the truth."""
        rng = np.random.default_rng(self.number)
        for beam in {id(beam): beam for beam, _ in self.truths}.values():
            right: set[tuple[int, int]] = set()
            for other, truth in self.truths:
                if other is beam:
                    right |= set(truth.pairs())
            for number, (part, rows) in enumerate(zip(beam.parts, beam.rows, strict=True)):
                if part.kind != "segment":
                    continue
                good = [choice for one, choice in right if one == number]
                order = [int(one) for one in np.argsort(-beam.scores[number]) if one not in good]
                others = order[NUM_LIKELY:]
                rng.shuffle(others)
                chosen = [*good, *order[:NUM_LIKELY], *others[:NUM_OTHERS]]
                yield rows[chosen], np.array([one in good for one in chosen])

    def steps(self, local: Scorer) -> Iterator[tuple[Rows, NDArray[np.bool_]]]:
        """The candidates that follow a right beginning, for some right ways."""
        for beam, truth in self.truths:
            beam.score(local, None)
            for walk in range(MAX_WALKS):
                state, way = State(0, -1, 0), Way(beam.parts)
                for number, part in enumerate(beam.parts):
                    behind = dict(truth.choices(state))
                    if not behind:
                        break
                    steps = beam.steps([way], number, list(behind))
                    choices = steps.choices.tolist()
                    yield step_rows(steps), np.array([choice in behind for choice in choices])
                    order = sorted(behind, key=lambda one: -beam.scores[number][one])
                    choice = order[min(walk, len(order) - 1) if number == 0 else 0]
                    way = Way(
                        beam.parts,
                        (*way.candidates, part.candidates[choice]),
                        (*way.step_scores, 0.0),
                        (*way.local_scores, float(beam.scores[number][choice])),
                    )
                    state = behind[choice]
                if len(beam.parts) == 1:
                    break

    def merged(self, local: Scorer, step: Scorer) -> MergedCase:
        """The best merges with fitted scores."""
        for _, beam in self.source.beams:
            beam.score(local, step)
        merges = self.source.merges()
        texts = [tuple(merge.lines) for merge in merges]
        return MergedCase(
            case_id=self.case.id,
            fold=self.fold,
            small_fold=fold_of(self.case, NUM_SMALL_FOLDS),
            weight=self.weight,
            must_refuse=self.case.must_refuse,
            has_truth=bool(self.truths),
            rows=self.source.features(merges),
            is_right=[filled(text) in self.expected for text in texts],
            is_whole=[list(text) in self.whole for text in texts],
            texts=texts,
        )


class ExamplePool:
    """Cases spread over processes that keep them between the stages of a fit."""

    def __init__(self, cases: Sequence[Case], weights: Sequence[float], num_processes: int) -> None:
        context = get_context("fork")
        self._links: list[Connection] = []
        for first in range(num_processes):
            here, there = context.Pipe()
            share = list(zip(cases, weights, strict=True))[first::num_processes]
            process = context.Process(target=_serve, args=(there, share), daemon=True)
            process.start()
            self._links.append(here)
        self.num_cases = sum(link.recv() for link in self._links)

    def candidates(self) -> Examples:
        """The candidates of all cases."""
        return self._gather(("candidates", None, None))

    def steps(self, locals_: Sequence[TreeScore]) -> Examples:
        """The steps of all cases; `locals_` are the fitted scores a fold was left out of."""
        return self._gather(("steps", locals_, None))

    def merged(self, locals_: Sequence[TreeScore], steps: Sequence[TreeScore]) -> list[MergedCase]:
        """The merges of all cases."""
        for link in self._links:
            link.send(("merged", locals_, steps))
        return [case for link in self._links for case in link.recv()]

    def _gather(self, request: object) -> Examples:
        for link in self._links:
            link.send(request)
        found = [one for link in self._links for one in link.recv()]
        sizes = [len(one.is_right) for one in found]
        return Examples(
            np.concatenate([one.rows for one in found]),
            np.concatenate([one.is_right for one in found]),
            np.repeat(np.arange(len(found)), sizes),
            np.repeat([one.weight for one in found], sizes),
            np.repeat([one.fold for one in found], sizes),
        )


def _serve(link: Connection, cases: Sequence[tuple[Case, float]]) -> None:
    known = []
    for number, (case, weight) in enumerate(cases):
        known.append(CaseExamples(case, number, weight))
    link.send(len(known))
    while True:
        try:
            name, locals_, steps = link.recv()
        except EOFError:
            return
        found: list[object] = []
        for one in known:
            if name == "candidates":
                found += [Group(*rows, one.weight, one.fold) for rows in one.candidates()]
            elif name == "steps":
                found += [
                    Group(*rows, one.weight, one.fold) for rows in one.steps(locals_[one.fold])
                ]
            else:
                found.append(one.merged(locals_[one.fold], steps[one.fold]))
        link.send(found)
