"""The merger with fitted scores beside the one without, on case files. By hand.

`python tests/oracle.py edits.merge_layers FILE… [--scores FILE] [--threshold P]` prints for each
file and kind how often the first text is right (blank lines not counted), how often the right one
is among 5 and 8, what either would apply, and how much of that is wrong. Neither asks a model.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apply_service.edit.place.score.ranked_merges import filled, rank_merges
from apply_service.edit.place.score.tree_score import SCORES_PATH, MergeScores, read_scores
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import plan_case

THRESHOLD = 0.95


@dataclass(frozen=True, slots=True)
class Answer:
    """What both say of a case. `rank` is the place of the right text, -1 if it is not offered."""

    case: Case
    rank: int
    is_exact: bool
    probability: float
    old_is_right: bool
    old_is_exact: bool
    old_is_applied: bool
    seconds: float
    text: str


def answer(case: Case, scores: MergeScores) -> Answer:
    """Merge one case with both."""
    original, _ = split_lines(case.original)
    update, _ = split_lines(case.update)
    began = time.perf_counter()
    ranked = rank_merges(
        original,
        update,
        scores,
        path=case.path,
        language=case.language,
        instruction=case.instruction,
    )
    seconds = time.perf_counter() - began
    planned = plan_case(case)
    outcome = planned.conclude()
    is_known = outcome is not None and outcome.verdict.status != "rejected"
    old = list(outcome.lines) if outcome is not None and is_known else None
    right = [list(split_lines(text)[0]) for text in case.results]
    wanted = [filled(lines) for lines in right]
    ranks = [rank for rank, one in enumerate(ranked.merges) if filled(one.lines) in wanted]
    first = list(ranked.merges[0].lines) if ranked.merges else []
    return Answer(
        case=case,
        rank=min(ranks, default=-1),
        is_exact=first in right,
        probability=ranked.certainty,
        old_is_right=old is not None and filled(old) in wanted,
        old_is_exact=old in right,
        old_is_applied=outcome is not None and outcome.verdict.status == "applied",
        seconds=seconds,
        text="\n".join(first),
    )


def report(name: str, answers: Sequence[Answer], threshold: float) -> None:
    """Print one line a question for some cases."""
    known = [one for one in answers if not one.case.must_refuse]
    num = len(known)
    if num:
        first = sum(one.rank == 0 for one in known)
        exact = sum(one.is_exact for one in known)
        among5 = sum(0 <= one.rank < 5 for one in known)
        among8 = sum(one.rank >= 0 for one in known)
        old = sum(one.old_is_right for one in known)
        old_exact = sum(one.old_is_exact for one in known)
        print(
            f"{name:28} first {first:4} ({exact} to the byte) old {old:4} ({old_exact}) "
            f"among 5 {among5:4} among 8 {among8:4} of {num}"
        )
    sure = [one for one in answers if one.probability >= threshold]
    right = sum(one.rank == 0 and not one.case.must_refuse for one in sure)
    old_sure = [one for one in answers if one.old_is_applied]
    old_right = sum(one.old_is_right and not one.case.must_refuse for one in old_sure)
    print(
        f"{'':28} applied and right {right:4}, wrong {len(sure) - right:3}; "
        f"old {old_right:4}, wrong {len(old_sure) - old_right:3} of {len(answers)}",
        flush=True,
    )


def main() -> int:
    """Compare both on files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--scores", type=Path, default=SCORES_PATH)
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--by-kind", action="store_true")
    parser.add_argument("--misses", type=Path, help="not for cases that nobody may read")
    chosen = parser.parse_args()
    try:
        scores = read_scores(chosen.scores)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    missed: list[dict[str, object]] = []
    for path in chosen.files:
        answers = [answer(case, scores) for case in read_cases(path)]
        report(path.name, answers, chosen.threshold)
        seconds = sorted(one.seconds for one in answers)
        print(
            f"{'':28} {1000 * seconds[len(seconds) // 2]:.0f} ms p50, "
            f"{1000 * seconds[int(len(seconds) * 0.95)]:.0f} ms p95"
        )
        kinds = Counter(one.case.style or "" for one in answers) if chosen.by_kind else {}
        for kind in kinds:
            report(
                f"  {kind}", [one for one in answers if one.case.style == kind], chosen.threshold
            )
        missed += [
            {
                "file": path.name,
                "id": one.case.id,
                "rank": one.rank,
                "probability": one.probability,
                "text": one.text,
                "old_is_right": one.old_is_right,
            }
            for one in answers
            if one.rank or one.case.must_refuse
        ]
    if chosen.misses:
        chosen.misses.write_text("".join(json.dumps(miss) + "\n" for miss in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
