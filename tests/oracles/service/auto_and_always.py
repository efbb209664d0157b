"""What `use_model` "auto" leaves out: the same edits by "auto" and by "always", in turns.

    python tests/oracle.py service.auto_and_always --out runs.jsonl tests/cases/*_edits.jsonl.gz
    python tests/oracle.py service.auto_and_always --out runs.jsonl --only-report

Both ask one engine with the service's settings, and each has its own plans and cached prompts.
They take turns to begin, so that other work of the machine falls on both alike. Cases come in a
fixed random order: a run that was stopped is a sample of all, and goes on where it ended.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
from oracles.edits.grammar_overhead import quantile

from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import Settings, load_settings
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.evaluate.contenders.pipeline import FORESEEN_ERRORS
from apply_service.evaluate.machine import describe_machine
from apply_service.evaluate.run_log import RunLog
from apply_service.http.problems import problem_of
from apply_service.models.loading import load_to_stay
from apply_service.service import LoadedModel
from batching.async_engine import AsyncEngine

Mode = Literal["auto", "always"]
_MODES: tuple[Mode, ...] = ("auto", "always")
_SEED = 0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one edit; `status` is the problem's code where there was no verdict."""

    status: str
    text: str | None = None
    is_right: bool = False
    asked_model: bool = False
    seconds: float


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One case by both; "<file>:<id>" is its key."""

    key: str
    auto: Run
    always: Run


class Comparison:
    """One engine with a pipeline for each of both. To be used on one event loop."""

    def __init__(self, loaded: LoadedModel, settings: Settings) -> None:
        self._engine = AsyncEngine(loaded.engine)
        limits = PipelineLimits(
            max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
        )
        self._pipelines = {
            mode: ApplyPipeline.on_engine(self._engine, loaded.profile, limits) for mode in _MODES
        }
        self.dtype = self._engine.model_info.dtype

    def start(self) -> None:
        """Start the engine on the running loop."""
        self._engine.start()

    async def stop(self) -> None:
        """Stop the engine."""
        await self._engine.stop()

    async def pair(self, key: str, case: Case, *, first: Mode) -> Pair:
        """A case by one and then by the other."""
        order = _MODES if first == "auto" else _MODES[::-1]
        runs = {mode: await self._run(case, mode) for mode in order}
        return Pair(key=key, **runs)

    async def _run(self, case: Case, mode: Mode) -> Run:
        edit = replace(edit_of_case(case, use_model=mode), cache_salt=mode.encode())
        started = time.perf_counter()
        try:
            outcome = await self._pipelines[mode].apply(edit)
        except FORESEEN_ERRORS as error:
            return Run(status=problem_of(error).code, seconds=time.perf_counter() - started)
        seconds = time.perf_counter() - started
        return Run(
            status=outcome.verdict.status,
            text=outcome.merged,
            is_right=outcome.merged == case.expected,
            asked_model=outcome.stats.target_passes > 0,
            seconds=seconds,
        )


def shuffled_cases(paths: Sequence[Path]) -> list[tuple[str, Case]]:
    """The cases of all files with their keys, in the order in which they are run."""
    cases = [(f"{path.name}:{case.id}", case) for path in paths for case in read_cases(path)]
    random.Random(_SEED).shuffle(cases)
    return cases


def report_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """A line for each case file and one for all, then each pair of statuses that differ."""
    by_file: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_file[pair.key.partition(":")[0]].append(pair)
    yield "file | cases | same text | same status | without the model | p50 s | p90 s | ratios"
    for name, group in [*sorted(by_file.items()), ("all", list(pairs))]:
        yield _summary(name, group)
    changes = Counter(
        (pair.auto.status, pair.auto.is_right, pair.always.status, pair.always.is_right)
        for pair in pairs
        if (pair.auto.status, pair.auto.text) != (pair.always.status, pair.always.text)
    )
    for (auto, is_right, always, was_right), count in changes.most_common():
        yield (
            f"{count} by auto {auto}{' and right' * is_right},"
            f" by always {always}{' and right' * was_right}"
        )


def _summary(name: str, pairs: Sequence[Pair]) -> str:
    same_text = sum(pair.auto.text == pair.always.text for pair in pairs)
    same_status = sum(pair.auto.status == pair.always.status for pair in pairs)
    without = sum(not pair.auto.asked_model for pair in pairs)
    seconds = {
        share: [
            quantile([run.seconds for run in runs], share)
            for runs in ([pair.auto for pair in pairs], [pair.always for pair in pairs])
        ]
        for share in (0.5, 0.9)
    }
    shown = " | ".join(f"{auto:.3f}, {always:.3f}" for auto, always in seconds.values())
    ratios = ", ".join(f"{auto / always:.3f}" for auto, always in seconds.values())
    return f"{name} | {len(pairs)} | {same_text} | {same_status} | {without} | {shown} | {ratios}"


async def compare(comparison: Comparison, cases: list[tuple[str, Case]], log: RunLog[Pair]) -> None:
    """Run what the log does not have yet."""
    known = {pair.key for pair in log.rows}
    comparison.start()
    try:
        for number, (key, case) in enumerate(cases):
            if key not in known:
                log.add(await comparison.pair(key, case, first=_MODES[number % 2]))
                print(f"{len(log.rows)} of {len(cases)}", file=sys.stderr)
    finally:
        await comparison.stop()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, required=True, help="finished runs, kept between calls")
    parser.add_argument("--limit", type=int, help="only the first so many of the random order")
    parser.add_argument("--only-report", action="store_true", help="run nothing")
    args = parser.parse_args()
    log = RunLog(args.out, identity={"bench": "auto and always", "seed": _SEED}, row_type=Pair)
    if not args.only_report:
        settings = load_settings(flags={}, environment=os.environ).settings
        comparison = Comparison(load_to_stay(settings, report=print), settings)
        print(describe_machine(device="cpu", dtype=comparison.dtype))
        asyncio.run(compare(comparison, shuffled_cases(args.cases)[: args.limit], log))
    print("\n".join(report_lines(log.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
