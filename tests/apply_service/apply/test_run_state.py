"""What attempts share: the best outcome, the merge, and the regions that are told of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import make_edit, make_plan, tries_of

from apply_service.apply.attempt import Attempt, try_merge
from apply_service.apply.conclusion import conclude, try_conclude_merge
from apply_service.apply.events import RegionRestart, RegionStarted, RunEvent
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import WorkTerms
from apply_service.apply.region_prompt import build_prompts
from apply_service.apply.run_state import RunState, is_final, is_good, rank

PLAN = make_plan(make_edit("a = 1\nb = 2\nc = 3\n", "# ...\nb = 2\nprint(b)\nc = 3\n"))
MERGED = ("a = 1", "b = 2", "print(b)", "c = 3")


class Kept:
    """A sink that keeps what it takes."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def put(self, event: RunEvent) -> None:
        self.events.append(event)


def state_of(plan: EditPlan, sink: Kept | None = None) -> RunState:
    return RunState(plan, WorkTerms.of(plan.edit, started_at=plan.started_at), sink or Kept())


def answered(*lines: str) -> tuple[Attempt, Outcome]:
    """An answer of the model, and its outcome."""
    attempt = Attempt(source="model", lines=lines)
    return attempt, conclude(PLAN, attempt)


GOOD = answered(*MERGED)
BROKEN = answered("a = 1", "this is no merge", "c = 3")
TRUNCATED = replace(BROKEN[0], ending="length")
CUT = (TRUNCATED, conclude(PLAN, TRUNCATED))


def test_a_merge_and_an_answer_are_attempts_that_are_judged_alike() -> None:
    assert PLAN.merge is not None
    assert PLAN.merge.best is not None
    merge = try_merge(PLAN)
    assert merge == Attempt(source="merge", lines=PLAN.merge.best)
    by_merge, by_model = conclude(PLAN, merge), GOOD[1]
    assert by_merge.verdict == by_model.verdict
    assert (by_merge.source, by_model.source) == ("merge", "model")
    assert by_merge.lines == by_model.lines == MERGED


def test_outcomes_have_an_order() -> None:
    assert rank(GOOD[1]) < rank(BROKEN[1]) < rank(CUT[1])
    assert is_good(GOOD[1])
    assert not is_good(BROKEN[1])
    assert not is_good(None)
    assert is_final(GOOD[1])
    assert not is_final(BROKEN[1])


@pytest.mark.parametrize("order", [(GOOD, BROKEN, CUT), (CUT, BROKEN, GOOD), (BROKEN, GOOD, CUT)])
def test_the_mildest_outcome_is_the_best(order: tuple[tuple[Attempt, Outcome], ...]) -> None:
    run = state_of(PLAN)
    assert not run.has_fallback
    for attempt, outcome in order:
        run.add_outcome(attempt, outcome)
    assert run.best is run.result is GOOD[1]
    assert run.is_applied
    assert run.has_fallback


def test_of_two_alike_the_models_is_the_result_and_a_broken_one_gives_way_to_the_merge() -> None:
    merge = try_conclude_merge(PLAN)
    run = state_of(PLAN)
    run.add_outcome(*BROKEN)
    run.add_merge(merge)
    assert run.result is merge
    run.add_outcome(*GOOD)
    assert run.result is GOOD[1]


def test_an_attempt_over_the_ceiling_is_the_result() -> None:
    run = state_of(PLAN)
    run.add_merge(try_conclude_merge(PLAN))
    over = replace(CUT[0], is_over_ceiling=True)
    run.add_outcome(over, CUT[1])
    assert run.result is CUT[1]
    assert run.is_over_ceiling
    assert not run.is_merge_wanted


def test_regions_are_counted_over_all_attempts_and_forgotten_with_theirs(
    tiny_model_dir: Path,
) -> None:
    oracle = OracleService(tiny_model_dir)
    sink = Kept()
    run = state_of(PLAN, sink)
    assert not run.has_begun
    attempt = tries_of(PLAN, oracle)[0]
    attempt = replace(
        attempt,
        prompts=build_prompts(PLAN, oracle.profile, regions=attempt.regions, scope=attempt.scope),
    )
    (region,) = attempt.regions
    run.begin(attempt)
    assert run.has_begun
    run.begin(attempt)
    run.forget_regions()
    assert sink.events == [
        RegionStarted(0, region.start, region.end),
        RegionRestart(0),
        RegionStarted(1, region.start, region.end),
        RegionRestart(1),
    ]
