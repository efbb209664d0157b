"""How often the likeliest merge is right, and how far its certainty can be believed. By hand.

`python tests/oracle.py edits.merge_certainty FILE…` asks no model. It prints for each file how
often the likeliest merge is right (blank lines not counted), how often the right one is among 5 and
8, and what would be applied at several thresholds: right and wrong. Then, over all files, it prints
what share is right at each certainty, and the expected calibration error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.merge import MIN_CERTAINTY
from apply_service.edit.place.score.ranked_merges import filled
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.case_statistics import wilson_interval
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import plan_case

THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
NUM_RESAMPLES = 1000
BORDERS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01)


@dataclass(frozen=True, slots=True)
class Answer:
    """The merges of a case. `rank` is the place of the right one, -1 if it is not offered.

    `is_doubted` says that a check other than that of its certainty doubts the first one.
    """

    case: Case
    rank: int
    is_exact: bool
    certainty: float
    is_doubted: bool
    seconds: float
    text: str

    @property
    def is_right(self) -> bool:
        """Whether the first merge may be applied."""
        return self.rank == 0 and not self.case.must_refuse

    def is_applied(self, threshold: float) -> bool:
        """Whether it is applied at a threshold."""
        return self.certainty >= threshold and not self.is_doubted


def answer(case: Case) -> Answer:
    """Merge one case."""
    began = time.perf_counter()
    planned = plan_case(case)
    outcome = planned.conclude()
    seconds = time.perf_counter() - began
    plan = planned.plan.merge if planned.plan is not None else None
    right = [list(split_lines(text)[0]) for text in case.results]
    wanted = [filled(lines) for lines in right]
    merges = [] if plan is None else plan.merges
    decided = planned.plan is not None and planned.plan.decision is not None
    if outcome is not None and decided and outcome.verdict.status != "rejected":
        merges, plan = [tuple(outcome.lines)], None
    ranks = [rank for rank, lines in enumerate(merges) if filled(lines) in wanted]
    codes = {one.code for one in outcome.verdict.findings} if outcome is not None else set()
    return Answer(
        case=case,
        rank=min(ranks, default=-1),
        is_exact=bool(merges) and list(merges[0]) in right,
        certainty=plan.certainty if plan is not None else float(bool(merges)),
        is_doubted=outcome is None or bool(codes - {"ambiguous_place"}),
        seconds=seconds,
        text="\n".join(merges[0]) if merges else "",
    )


def report(name: str, answers: Sequence[Answer]) -> None:
    """Print what was right for some cases."""
    known = [one for one in answers if not one.case.must_refuse]
    if known:
        first, exact = sum(one.rank == 0 for one in known), sum(one.is_exact for one in known)
        among = [sum(0 <= one.rank < limit for one in known) for limit in (5, 8)]
        print(
            f"{name:28} first {first:4} ({exact} to the byte) among 5 {among[0]:4} among 8"
            f" {among[1]:4} of {len(known)}"
        )
    found = []
    for threshold in sorted({*THRESHOLDS, MIN_CERTAINTY}):
        sure = [one for one in answers if one.is_applied(threshold)]
        right = sum(one.is_right for one in sure)
        found.append(f"{threshold}: {right}, {len(sure) - right}")
    print(f"{'':28} right, wrong of {len(answers)} at {'; '.join(found)}", flush=True)


class Believed(Protocol):
    """A result that somebody had to decide whether to believe."""

    @property
    def certainty(self) -> float:
        """How likely it was said to be right."""

    @property
    def is_right(self) -> bool:
        """Whether it is."""


def report_certainty(answers: Sequence[Believed]) -> None:
    """Print the share that is right in each range of certainty, and the mean distance of both.

    The 95 % interval of the distance is a bootstrap over the answers.
    """
    hits = np.array([one.is_right for one in answers], float)
    said = np.array([one.certainty for one in answers])
    ranges = np.digitize(said, BORDERS)
    for place, (low, high) in enumerate(pairwise(BORDERS), 1):
        some = ranges == place
        if some.any():
            right, num = int(hits[some].sum()), int(some.sum())
            interval = wilson_interval(right, num)
            print(
                f"{low:.2f} to {min(high, 1.0):.2f}: mean {said[some].mean():.3f}, {right} of {num}"
                f" right, {right / num:.1%} ({interval[0]:.1%}–{interval[1]:.1%})"
            )
    if not len(said):
        return

    def error_of(chosen: NDArray[np.intp]) -> float:
        sums = np.bincount(ranges[chosen], hits[chosen] - said[chosen])
        return float(np.abs(sums).sum() / len(chosen))

    draws = np.random.default_rng(0)
    errors = [error_of(draws.integers(0, len(said), len(said))) for _ in range(NUM_RESAMPLES)]
    low, high = np.percentile(errors, [2.5, 97.5])
    error = error_of(np.arange(len(said)))
    print(f"expected calibration error {error:.3f} ({low:.3f}–{high:.3f})")


def main() -> int:
    """Measure on files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--by-kind", action="store_true")
    parser.add_argument("--misses", type=Path, help="not for cases that nobody may read")
    chosen = parser.parse_args()
    everything: list[Answer] = []
    for path in chosen.files:
        answers = [answer(case) for case in read_cases(path)]
        everything += answers
        report(path.name, answers)
        seconds = sorted(one.seconds for one in answers)
        print(
            f"{'':28} {1000 * seconds[len(seconds) // 2]:.0f} ms p50, "
            f"{1000 * seconds[int(len(seconds) * 0.95)]:.0f} ms p95"
        )
        kinds = Counter(one.case.style or "" for one in answers) if chosen.by_kind else {}
        for kind in kinds:
            report(f"  {kind}", [one for one in answers if one.case.style == kind])
    report_certainty(everything)
    if chosen.misses:
        missed = [
            {
                "id": one.case.id,
                "rank": one.rank,
                "certainty": one.certainty,
                "text": one.text,
            }
            for one in everything
            if not one.is_right
        ]
        chosen.misses.write_text("".join(json.dumps(miss) + "\n" for miss in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
