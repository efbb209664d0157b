"""Silent errors of the whole pipeline when its model is wrong every now and then.

`python tests/oracle.py damage.silent_errors build/cases/dev.jsonl build/cases/train.jsonl`
runs real cases through the real pipeline. The model is an oracle without a transformer: it writes
the truth, or with a fixed probability a corruption of it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from oracles.damage.corrupting_oracle import CorruptingOracle

from apply_service.apply.run import PipelineLimits
from apply_service.evaluate.accuracy_report import format_accuracy_report, summarise_accuracy
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.case_result import CaseResult
from apply_service.evaluate.cases.misses import write_misses
from apply_service.evaluate.cases.planned_case import plan_case
from apply_service.evaluate.contenders.pipeline import PipelineContender
from apply_service.models.store import resolve_model
from apply_service.observe.progress import Progress
from apply_service.prompts.profile import load_profile

LIMITS = PipelineLimits(max_file_bytes=4_000_000, max_draft_tokens=64)


@dataclass(frozen=True)
class OracleRun:
    """The results in order, and what the oracle did to its answers to each case."""

    results: list[CaseResult]
    kinds: list[list[str | None]]


def run_cases(cases: Sequence[Case], *, share: float, seed: int, has_fallback: bool) -> OracleRun:
    """Answer all cases with the pipeline over the oracle."""
    location = resolve_model("embedded")
    oracle = CorruptingOracle(load_profile(location.profile, location.path), share=share, seed=seed)
    contender = PipelineContender(oracle.load(), LIMITS, has_fallback=has_fallback)
    run = OracleRun([], [])
    progress = Progress(sys.stderr)
    try:
        for number, case in enumerate(cases, start=1):
            progress.show_stage(f"case {number} of {len(cases)}")
            oracle.begin(case)
            answer = contender.answer(case)
            planned = plan_case(case)
            run.results.append(
                CaseResult(
                    case,
                    answer,
                    language=planned.language or "unknown",
                    is_certain=planned.is_certain,
                )
            )
            run.kinds.append(oracle.kinds)
    finally:
        progress.clear()
        contender.close()
    return run


def describe(run: OracleRun) -> Iterator[str]:
    """The report, and which damage got through."""
    report: dict[str, Any] = summarise_accuracy(run.results)
    answers = Counter(kind is not None for kinds in run.kinds for kind in kinds)
    low, high = report["wilson_95"]["silent_errors"]
    yield f"{answers[True]} of {answers.total()} answers of the model were corrupted"
    yield format_accuracy_report(report)
    yield f"silent error rate {report['silent_error_rate']:.2%}, between {low:.2%} and {high:.2%}"
    done: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    for result, kinds in zip(run.results, run.kinds, strict=True):
        for kind in {kind or "the truth" for kind in kinds} or {"no model"}:
            done[kind] += 1
            silent[kind] += result.is_silent_error
    for kind, count in sorted(done.items()):
        yield f"  {kind:<24}{count:>6} cases{silent[kind]:>6} silent"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--share", type=float, default=0.3, help="of answers that are corrupted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-fallback", action="store_true")
    parser.add_argument("--failures", type=Path, default=Path("build/silent-errors"))
    chosen = parser.parse_args()
    cases = list(islice(chain.from_iterable(map(read_cases, chosen.cases)), chosen.limit))
    run = run_cases(
        cases, share=chosen.share, seed=chosen.seed, has_fallback=not chosen.no_fallback
    )
    print("\n".join(describe(run)))
    num_misses = write_misses(run.results, chosen.failures)
    print(f"{num_misses} misses as diffs in {chosen.failures}")


if __name__ == "__main__":
    main()
