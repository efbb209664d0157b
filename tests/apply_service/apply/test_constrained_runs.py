"""Whatever a model prefers, under the constraint it writes a merge: real runs of a random model.

Nothing is invented, nothing of the update is left out, and what is gone is listed.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from case_files import case_file

from apply_service.apply.edit_request import SamplingOptions
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import Settings
from apply_service.edit.text.blank_lines import squeeze
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case, plan_case
from apply_service.models.loading import load_served_model
from batching.async_engine import AsyncEngine

NUM_CASES = 60
# One token a byte: prompt and answer of a case must fit into 4096 together.
MAX_CHARACTERS = 3600
LIMITS = PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64)
GREEDY = SamplingOptions()
DRAWN = SamplingOptions(temperature=8.0, seed=11)


def small_cases() -> Iterator[tuple[Case, EditPlan]]:
    """Cases that have a merge, and something to be merged."""
    for name in ("short_edits", "agent_written"):
        for case in read_cases(case_file(name)):
            plan = plan_case(case).plan
            is_small = 2.2 * len(case.original) + 2 * len(case.update) < MAX_CHARACTERS
            if is_small and plan is not None and plan.decision is None:
                yield case, plan


@pytest.fixture(scope="module")
def runs(tiny_model_dir: Path) -> list[tuple[EditPlan, Outcome]]:
    """Each case as the model likes it best, and as it is drawn."""
    settings = Settings(
        model=str(tiny_model_dir), profile="embedded", threads=1, kv_memory=8 << 20, device="cpu"
    )
    loaded = load_served_model(settings, report=lambda _stage: None)
    chosen = list(small_cases())[:NUM_CASES]
    assert len(chosen) == NUM_CASES

    async def run_all() -> list[tuple[EditPlan, Outcome]]:
        engine = AsyncEngine(loaded.engine)
        engine.start()
        pipeline = ApplyPipeline.on_engine(engine, loaded.profile, LIMITS)
        found = []
        try:
            for case, plan in chosen:
                for sampling in (GREEDY, DRAWN):
                    edit = edit_of_case(case, has_fallback=False, constraint="merge")
                    edit = replace(edit, sampling=sampling)
                    found.append((plan, await pipeline.apply(edit)))
        finally:
            await engine.stop()
        return found

    return asyncio.run(run_all())


def filled(lines: Sequence[str]) -> Counter[str]:
    """How often each line stands there, blank ones and indentation aside."""
    return Counter(filter(None, map(squeeze, lines)))


def test_every_answer_was_bound_and_is_a_valid_merge(
    runs: list[tuple[EditPlan, Outcome]],
) -> None:
    for plan, outcome in runs:
        assert plan.merge is not None
        assert (outcome.source, outcome.confidence is None) == ("model", False)
        assert plan.merge.number_of(outcome.lines, ignores_blank_lines=True) is not None
        found = {finding.code for finding in outcome.verdict.findings}
        assert not found & {"not_a_merge", "no_valid_merge", "truncated"}
    assert sum(len(outcome.decisions) > 0 for _, outcome in runs) >= 10
    assert len({outcome.lines for _, outcome in runs}) > NUM_CASES, "a draw takes other ways"


def test_every_decision_names_the_line_that_was_written(
    runs: list[tuple[EditPlan, Outcome]],
) -> None:
    for plan, outcome in runs:
        assert plan.snippet is not None
        sent = {line.number for segment in plan.snippet.segments for line in segment.lines}
        for decision in outcome.decisions:
            text = [*outcome.lines, ""][decision.line - 1]
            assert decision.chosen.text == text
            probabilities = [decision.probability, *(o.probability for o in decision.alternatives)]
            assert sum(probabilities) == pytest.approx(1.0)
            for branch in (decision.chosen, *decision.alternatives):
                match re.findall(r"\w+", branch.origin):
                    case ["keeps", "line", number, *_]:
                        assert plan.original_lines[int(number) - 1] == branch.text
                    case ["takes", "line", number, *_]:
                        assert int(number) in sent
                    case words:
                        assert words in (
                            ["ends", "the", "file"],
                            ["comes", "from", "the", "update"],
                        )


def test_no_line_is_invented(runs: list[tuple[EditPlan, Outcome]]) -> None:
    for plan, outcome in runs:
        assert plan.snippet is not None
        known = filled(plan.original_lines)
        for segment in plan.snippet.segments:
            known += filled(segment.texts)
        assert filled(outcome.lines) <= known


def test_no_line_of_the_update_is_left_out(runs: list[tuple[EditPlan, Outcome]]) -> None:
    for plan, outcome in runs:
        assert plan.snippet is not None
        sent = Counter[str]()
        for segment in plan.snippet.segments:
            sent += filled([line.text for line in segment.lines if not line.is_optional])
        assert sent <= filled(outcome.lines)


def test_every_line_that_is_gone_is_listed(runs: list[tuple[EditPlan, Outcome]]) -> None:
    num_gone = 0
    for plan, outcome in runs:
        gone = filled(plan.original_lines) - filled(outcome.lines)
        listed = outcome.verdict.removed_lines
        assert gone <= filled([line.text for line in listed])
        for line in listed:
            assert plan.original_lines[line.number - 1] == line.text
        num_gone += gone.total()
    assert num_gone > NUM_CASES
