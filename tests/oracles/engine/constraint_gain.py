"""What the constraint gains: `python tests/oracle.py engine.constraint_gain CASES.jsonl`.

Runs real cases with the default model, the smallest scope and no fallback, apart for cases in which
the constraint leaves a choice and for those in which it leaves none. Three answers are compared
with the truth: that of the model bound by the constraint, that of the model writing freely (whether
it would write the truth is seen without writing its other answers to the end), and the
deterministic merge. With `--out` what is done is kept, and not done again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from oracles.edits.region_truth import region_truths
from oracles.engine.truth_proposer import TruthProposer

from apply_service.apply.attempt import attempts_of
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.region_prompt import RegionPrompt, build_prompts
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import load_settings
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.case_statistics import wilson_interval
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.models.loading import load_served_model
from apply_service.observe.progress import Progress
from apply_service.prompts.errors import PromptError
from apply_service.service import LoadedModel
from batching.async_engine import AsyncEngine
from batching.errors import EngineError
from batching.events import Failed, Finished, Tokens
from batching.request import EngineRequest, SamplingParams
from lookup.constraint import TokenNotAllowedError

LIMITS = PipelineLimits(max_file_bytes=4_000_000, max_draft_tokens=64)


class CaseGain(msgspec.Struct, frozen=True):
    """One case: which of the three answers were exact, and its decisions.

    `num_decisions` are those that the constraint asked; `is_path` says that the truth is an answer
    that the constraint allows.
    """

    id: str
    num_decisions: int
    is_path: bool
    bound: bool
    free: bool
    merge: bool
    confidence: float | None
    status: str


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case with its plan, its first attempt's prompts and the truth of every region."""

    case: Case
    plan: EditPlan
    prompts: tuple[RegionPrompt, ...]
    truths: list[list[str]]
    is_coverable: bool

    @property
    def has_choice(self) -> bool:
        """Whether the constraint leaves a choice in any region."""
        return any(
            prompt.constraint is not None and bool(prompt.constraint.grammar().draft().decisions)
            for prompt in self.prompts
        )


class GainBench:
    """The default model, asked with and without the constraint."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._profile = loaded.profile
        self._engine = AsyncEngine(loaded.engine)
        self._pipeline = ApplyPipeline.on_engine(self._engine, loaded.profile, LIMITS)

    def start(self) -> None:
        """Start the engine on the running loop."""
        self._engine.start()

    async def stop(self) -> None:
        """Stop the engine."""
        await self._engine.stop()

    def try_prepare(self, case: Case) -> PreparedCase | None:
        """The case as the service would ask it; None where no model is needed or none can help."""
        edit = replace(edit_of_case(case), constraint="merge", has_fallback=False)
        try:
            plan = plan_edit(edit, max_file_bytes=LIMITS.max_file_bytes)
            if plan.decision is not None or plan.merge is None or plan.merge.best is None:
                return None
            attempt = next(attempts_of(plan, max_region_tokens=self._profile.max_region_tokens))
            prompts = build_prompts(
                plan, self._profile, regions=attempt.regions, scope=attempt.scope
            )
        except (SnippetError, PromptError):
            return None
        original = plan.original_lines
        expected = list(TextFile.from_text(case.expected).lines)
        regions = [prompt.region for prompt in prompts]
        truths = region_truths(
            original, expected, [original[region.start : region.end] for region in regions]
        )
        rebuilt: list[str] = []
        place = 0
        for region, truth in zip(regions, truths, strict=True):
            rebuilt += [*original[place : region.start], *truth]
            place = region.end
        is_coverable = [*rebuilt, *original[place:]] == expected
        return PreparedCase(case, plan, prompts, truths, is_coverable)

    async def measure(self, prepared: PreparedCase) -> CaseGain:
        """Ask twice. Raises EngineError."""
        plan = prepared.plan
        outcome = await self._pipeline.run(plan)
        assert plan.merge is not None, "a prepared case has a merge"
        assert plan.merge.best is not None, "a prepared case has a merge"
        merged = plan.edit.original.join(plan.merge.best)
        expected = prepared.case.expected
        return CaseGain(
            id=prepared.case.id,
            num_decisions=len(outcome.decisions),
            is_path=prepared.is_coverable and _is_path(prepared),
            bound=outcome.merged == expected,
            free=prepared.is_coverable and await self._writes_truths(prepared),
            merge=merged == expected,
            confidence=outcome.confidence,
            status=outcome.verdict.status,
        )

    async def _writes_truths(self, prepared: PreparedCase) -> bool:
        pairs = zip(prepared.prompts, prepared.truths, strict=True)
        for number, (prompt, truth) in enumerate(pairs):
            if not await self._writes(f"{prepared.case.id}-{number}", prompt, truth):
                return False
        return True

    async def _writes(self, request_id: str, region: RegionPrompt, truth: Sequence[str]) -> bool:
        """Whether the model, writing freely, writes `truth`: greedy drafts hold or they do not."""
        prompt = region.prompt
        answer = (*prompt.answer_token_ids(truth), *prompt.end_token_ids)
        handle = self._engine.submit(
            EngineRequest(
                request_id=request_id,
                prompt_token_ids=tuple(prompt.token_ids),
                sampling=SamplingParams(
                    max_tokens=len(answer), stop_token_ids=prompt.stop_token_ids
                ),
                proposer=TruthProposer(answer),
                max_draft_tokens=LIMITS.max_draft_tokens,
            )
        )
        written: list[int] = []
        async with handle:
            async for event in handle:
                if isinstance(event, Failed):
                    raise event.error
                if isinstance(event, Tokens):
                    written += event.token_ids
                    if tuple(written) != answer[: len(written)]:
                        return False
                if isinstance(event, Finished):
                    return tuple(written) == answer
        return False


def _is_path(prepared: PreparedCase) -> bool:
    """Whether the constraint allows the truth in every region."""
    for region, truth in zip(prepared.prompts, prepared.truths, strict=True):
        if region.constraint is None:
            return False
        grammar = region.constraint.grammar()
        prompt = region.prompt
        try:
            grammar.advance_all((*prompt.answer_token_ids(truth), *prompt.end_token_ids))
        except TokenNotAllowedError:
            return False
        if not grammar.is_complete:
            return False
    return True


def report(gains: Sequence[CaseGain]) -> Iterator[str]:
    """Shares with intervals, apart for cases with and without a decision."""
    asked = [gain for gain in gains if gain.num_decisions]
    unasked = [gain for gain in gains if not gain.num_decisions]
    for name, group in (("with a decision", asked), ("without one", unasked), ("all", gains)):
        if not group:
            continue
        yield f"cases {name}: {len(group)}"
        yield f"  exact with the constraint   {_share([gain.bound for gain in group])}"
        yield f"  exact without it            {_share([gain.free for gain in group])}"
        yield f"  exact merge alone           {_share([gain.merge for gain in group])}"
        better = sum(gain.bound and not gain.merge for gain in group)
        worse = sum(gain.merge and not gain.bound for gain in group)
        yield f"  the model mended the merge in {better} and spoilt it in {worse}"
    open_cases = [gain for gain in asked if gain.is_path]
    yield f"decisions where the truth is among the answers allowed: {len(open_cases)} cases"
    yield f"  decided rightly             {_share([gain.bound for gain in open_cases])}"
    yield f"  the merge's first guess     {_share([gain.merge for gain in open_cases])}"


def _share(hits: Sequence[bool]) -> str:
    low, high = wilson_interval(sum(hits), len(hits))
    share = sum(hits) / max(len(hits), 1)
    return f"{sum(hits):>5} of {len(hits):<5} {share:7.1%}  [{low:.1%}, {high:.1%}]"


async def _run(cases: Iterator[Case], limit: int, out: Path | None) -> list[CaseGain]:
    settings = load_settings(flags={}, environment=os.environ).settings
    bench = GainBench(load_served_model(settings, report=lambda _: None))
    done = {gain.id: gain for gain in _read(out)}
    gains: list[CaseGain] = []
    counts = {True: 0, False: 0}
    progress = Progress(sys.stderr)
    bench.start()
    try:
        for case in cases:
            if all(count >= limit for count in counts.values()):
                break
            gain = done.get(case.id)
            if gain is None:
                prepared = bench.try_prepare(case)
                if prepared is None or counts[prepared.has_choice] >= limit:
                    continue
                try:
                    gain = await bench.measure(prepared)
                except EngineError as error:
                    progress.show_stage(f"{case.id}: {error}")
                    continue
                _append(out, gain)
            counts[gain.num_decisions > 0] += 1
            gains.append(gain)
            progress.show_stage(f"{counts[True]} with a decision, {counts[False]} without")
    finally:
        progress.clear()
        await bench.stop()
    return gains


def _read(out: Path | None) -> list[CaseGain]:
    if out is None or not out.exists():
        return []
    return [msgspec.json.decode(line, type=CaseGain) for line in out.read_bytes().splitlines()]


def _append(out: Path | None, gain: CaseGain) -> None:
    if out is not None:
        with out.open("ab") as file:
            file.write(msgspec.json.encode(gain) + b"\n")


def main() -> None:
    """Read the command line, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--limit", type=int, default=200, help="cases of each of the two kinds")
    parser.add_argument("--out", type=Path, help="file in which results are kept")
    chosen = parser.parse_args()
    for line in report(asyncio.run(_run(read_cases(chosen.cases), chosen.limit, chosen.out))):
        print(line)


if __name__ == "__main__":
    main()
