"""Runs: regions side by side, wider tries, the merge as a fallback, deadlines, and ends."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracle_service import OracleService
from pipeline_session import (
    MAX_FILE_BYTES,
    Session,
    check_items,
    functions,
    make_edit,
    make_plan,
    merge_of,
    outcome_of,
    run_edit,
    session,
    teach,
    text_of,
    tries_of,
)

from apply_service.apply import conclusion, intake
from apply_service.apply.errors import (
    OverloadedError,
    PromptTooLongError,
    WithdrawnError,
)
from apply_service.apply.event_stream import EventStream
from apply_service.apply.events import RegionDone, RegionRestart, RegionStarted, RegionText
from apply_service.apply.outcome import Outcome
from apply_service.prompts.profile import Profile, Prompt, PromptRequest
from batching.errors import DeadlineExceededError, QueueFullError
from batching.step_plan import StepPlan, StepResult

NAMES = [f"part_{number:02d}" for number in range(43)]
LARGE = functions(NAMES)  # 299 lines
MARKER = "# ... existing code ..."


def far_update(*names: str) -> str:
    """A line more in each of the functions, anchored by unique lines on both sides."""
    parts = [
        f"def {name}(value):\n    total_{name} = value + {NAMES.index(name)}\n"
        f"    print(value)\n    for step in range({NAMES.index(name)}):\n{MARKER}\n"
        for name in names
    ]
    return f"{MARKER}\n" + "".join(parts)


def with_prints(*names: str) -> str:
    """The large file with that line in each of the functions."""
    text = LARGE
    for name in names:
        anchor = f"    total_{name} = value + {NAMES.index(name)}\n"
        assert text.count(anchor) == 1
        text = text.replace(anchor, anchor + "    print(value)\n")
    return text


FAR = make_edit(LARGE, far_update("part_03", "part_38"))
# `check(value)` stands in two functions, so the place of the new line is open.
CHECKED = LARGE.replace("def part_20(value):\n", "def part_20(value):\n    check(value)\n").replace(
    "def part_22(value):\n", "def part_22(value):\n    check(value)\n"
)
UNSURE = make_edit(CHECKED, f"{MARKER}\n    check(value)\n    print(value)\n{MARKER}\n")


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(
        tiny_model_dir, max_position=40_000, num_blocks=4096, max_file_bytes=MAX_FILE_BYTES
    )
    oracle.will_answer(["this is no merge"])
    return oracle


def test_two_far_edits_are_two_regions_of_one_batch(
    oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(FAR)
    narrow = tries_of(plan, oracle)[0]
    teach(oracle, plan, narrow)
    sizes = []
    execute = oracle.runner.execute

    def note(step: StepPlan) -> StepResult:
        sizes.append(len(step.scheduled))
        return execute(step)

    monkeypatch.setattr(oracle.runner, "execute", note)
    items = run_edit(oracle, replace(FAR, max_draft_tokens=2))
    first, second = narrow.regions
    assert items[:2] == [
        RegionStarted(0, first.start, first.end),
        RegionStarted(1, second.start, second.end),
    ]
    assert max(sizes) == 2, "both regions run in one step"
    ends = [place for place, item in enumerate(items) if isinstance(item, RegionDone)]
    begins = [
        items.index(next(t for t in items if isinstance(t, RegionText) and t.index == index))
        for index in (0, 1)
    ]
    assert max(begins) < min(ends), "both grow before either ends"
    result = outcome_of(items)
    assert (result.verdict.status, result.source, result.scope) == ("applied", "model", "region")
    assert result.regions == narrow.regions
    assert result.merged == with_prints("part_03", "part_38")
    merged = with_prints("part_03", "part_38").split("\n")[:-1]
    assert text_of(items, 0).split("\n") == merged[first.start : first.end + 1]
    assert text_of(items, 1).split("\n") == merged[second.start + 1 : second.end + 2]
    assert result.stats.num_prompt_tokens < len(LARGE)


def test_a_wrong_answer_gives_way_to_a_certain_merge_at_once(oracle: OracleService) -> None:
    items = run_edit(oracle, FAR)
    result = outcome_of(items)
    assert (result.verdict.status, result.source) == ("applied", "merge")
    assert result.merged == with_prints("part_03", "part_38")
    assert not any(isinstance(item, RegionRestart) for item in items)
    assert result.stats.num_output_tokens > 0, "what was written in vain is counted"


def test_wrong_answers_about_an_open_place_widen_to_the_file(oracle: OracleService) -> None:
    plan = make_plan(UNSURE)
    tries = tries_of(plan, oracle)
    assert [attempt.scope for attempt in tries] == ["region", "region", "region", "region", "file"]
    items = run_edit(oracle, UNSURE)
    started = [item for item in items if isinstance(item, RegionStarted)]
    assert [(one.start, one.end) for one in started] == [
        (region.start, region.end) for attempt in tries for region in attempt.regions
    ]
    restarts = [item.index for item in items if isinstance(item, RegionRestart)]
    assert restarts == [one.index for one in started[:-1]]
    result = outcome_of(items)
    assert (result.verdict.status, result.source) == ("needs_review", "merge")
    assert "ambiguous_place" in {finding.code for finding in result.verdict.findings}
    assert list(result.lines) == merge_of(plan)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_the_first_good_answer_ends_it(oracle: OracleService, number: int) -> None:
    plan = make_plan(UNSURE)
    tries = tries_of(plan, oracle)
    teach(oracle, plan, tries[number])
    items = run_edit(oracle, UNSURE)
    result = outcome_of(items)
    assert (result.scope, result.regions) == (tries[number].scope, tries[number].regions)
    assert (result.verdict.status, result.source) == ("needs_review", "model")
    assert list(result.lines) == merge_of(plan)
    num_regions = sum(len(attempt.regions) for attempt in tries[: number + 1])
    assert sum(isinstance(item, RegionStarted) for item in items) == num_regions


def test_without_a_fallback_the_one_answer_stands(oracle: OracleService) -> None:
    items = run_edit(oracle, replace(UNSURE, has_fallback=False))
    result = outcome_of(items)
    assert (result.source, result.scope) == ("model", "region")
    assert "not_a_merge" in {finding.code for finding in result.verdict.findings}
    assert sum(isinstance(item, RegionStarted) for item in items) == 1
    region = result.regions[0]
    lines = make_plan(UNSURE).original_lines
    assert result.lines == (*lines[: region.start], "this is no merge", *lines[region.end :])


def test_scope_region_never_widens_to_the_file(oracle: OracleService) -> None:
    items = run_edit(oracle, replace(UNSURE, scope="region"))
    num_lines = CHECKED.count("\n")
    spans = [(item.start, item.end) for item in items if isinstance(item, RegionStarted)]
    assert len(spans) == 4
    assert (0, num_lines) not in spans


def test_scope_file_is_the_file(oracle: OracleService) -> None:
    oracle.will_answer(with_prints("part_03", "part_38").split("\n")[:-1])
    result = outcome_of(run_edit(oracle, replace(FAR, scope="file")))
    assert (result.scope, result.source, result.verdict.status) == ("file", "model", "applied")
    assert [(region.start, region.end) for region in result.regions] == [(0, 299)]


def test_a_file_that_does_not_fit_is_rewritten_by_regions(
    oracle: OracleService, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that is trained on whole files is shown parts of one that is too large for it."""
    small = OracleService(
        tiny_model_dir, max_position=5000, num_blocks=1024, max_file_bytes=MAX_FILE_BYTES
    )
    monkeypatch.setattr(small.profile, "max_region_tokens", None)
    plan = make_plan(FAR)
    scopes = [attempt.scope for attempt in tries_of(plan, small)]
    assert scopes[0] == "file"
    teach(small, plan, tries_of(plan, oracle)[0])
    result = outcome_of(run_edit(small, FAR))
    assert (result.scope, result.source, result.verdict.status) == ("region", "model", "applied")
    with pytest.raises(PromptTooLongError):
        run_edit(small, replace(FAR, scope="file", has_fallback=False))


def test_what_fits_in_no_form_is_refused_with_the_figures_of_the_smallest(
    tiny_model_dir: Path,
) -> None:
    tiny = OracleService(
        tiny_model_dir, max_position=150, num_blocks=64, max_file_bytes=MAX_FILE_BYTES
    )
    with pytest.raises(PromptTooLongError, match='the limit is 150; leave checks "on"') as caught:
        run_edit(tiny, replace(FAR, has_fallback=False))
    assert 150 < caught.value.value < len(LARGE)
    assert caught.value.limit == 150


def test_an_edit_that_others_make_late_is_sent_away_and_not_blamed(oracle: OracleService) -> None:
    async def scenario() -> None:
        async with session(oracle) as here:
            oracle.runner.step_s = 0.1
            await here.collect(FAR)
            oracle.runner.gate.clear()
            runs = [await here.start(FAR) for _ in range(5)]
            while here.engine.stats().num_running + here.engine.stats().num_waiting < 10:
                await asyncio.sleep(0.01)
            with pytest.raises(OverloadedError, match="the requests before this one") as caught:
                await here.start(replace(FAR, deadline_s=0.2))
            assert caught.value.retry_after_s > 0
            for run in runs:
                run.cancel()
            oracle.runner.step_s = 0.0
            oracle.runner.gate.set()
            await here.wait_until_ended(num_cancelled=10, num_finished=2)
            await here.collect(replace(FAR, deadline_s=1000.0))

    asyncio.run(scenario())


def test_who_asks_for_more_time_than_there_is_learns_why_it_ended(oracle: OracleService) -> None:
    oracle.runner.step_s = 2.5
    capped = replace(UNSURE, deadline_s=2.0, is_deadline_capped=True, max_draft_tokens=0)
    with pytest.raises(DeadlineExceededError, match=r"over the 2 s .*max_deadline_s"):
        run_edit(oracle, capped)


def test_a_cap_is_explained_while_prompts_are_written(
    oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = oracle.profile.build

    def build_slowly(request: PromptRequest) -> Prompt:
        time.sleep(1.5)
        return build(request)

    monkeypatch.setattr(oracle.profile, "build", build_slowly)
    capped = replace(UNSURE, deadline_s=1.0, is_deadline_capped=True)
    with pytest.raises(DeadlineExceededError, match=r"over the 1 s .*max_deadline_s"):
        run_edit(oracle, capped)


def test_a_deadline_in_the_first_try_leaves_the_certain_merge(oracle: OracleService) -> None:
    oracle.will_answer([f"line {number}" for number in range(60)])
    oracle.runner.step_s = 0.05
    slow = {"deadline_s": 1.0, "max_draft_tokens": 0}
    items = run_edit(oracle, replace(FAR, **slow))
    result = outcome_of(items)
    assert (result.verdict.status, result.source) == ("applied", "merge")
    assert not any(isinstance(item, RegionDone) for item in items), "both were cut off"
    assert items[-3:-1] == [RegionRestart(0), RegionRestart(1)]
    with pytest.raises(DeadlineExceededError):
        run_edit(oracle, replace(UNSURE, **slow))
    with pytest.raises(DeadlineExceededError):
        run_edit(oracle, replace(FAR, has_fallback=False, **slow))


@pytest.mark.parametrize("grace_s", [60.0, 0.0])
def test_a_deadline_in_a_later_try_leaves_the_best_so_far(
    oracle: OracleService, monkeypatch: pytest.MonkeyPatch, grace_s: float
) -> None:
    monkeypatch.setattr(intake, "SETTLING_GRACE_S", grace_s)

    async def scenario() -> list[Any]:
        items = []
        async with session(oracle) as here:
            async for item in await here.start(replace(UNSURE, deadline_s=3.0)):
                items.append(item)
                if isinstance(item, RegionRestart):
                    oracle.runner.step_s = 3.5
            assert here.engine.stats().finished == 1
        return items

    items = asyncio.run(scenario())
    result = outcome_of(items)
    assert (result.verdict.status, result.source) == ("needs_review", "merge")
    (dropped,) = [one for one in result.verdict.findings if one.code == "retry_dropped"]
    assert "the deadline left no time" in dropped.message
    assert sum(isinstance(item, RegionStarted) for item in items) == 2
    assert [item for item in items if isinstance(item, RegionRestart)] == [
        RegionRestart(0),
        RegionRestart(1),
    ]
    assert items[-2] == RegionRestart(1), "the try that the deadline cut off is forgotten"
    assert bool(result.choices) == bool(grace_s)


async def cancel_in_mid_run(here: Session) -> None:
    run = await here.start(replace(FAR, max_draft_tokens=0))
    seen = []
    events = aiter(run)
    while not seen or not isinstance(seen[-1], RegionText):
        seen.append(await anext(events))
    assert not here.is_idle
    run.cancel()
    with pytest.raises(WithdrawnError):
        seen.extend([item async for item in events])
    assert not any(isinstance(item, Outcome) for item in seen)


async def leave_in_mid_run(here: Session) -> None:
    run = await here.start(replace(FAR, max_draft_tokens=0))
    async for item in run:
        if isinstance(item, RegionText):
            break
    assert not here.is_idle
    run.cancel()


async def never_read(here: Session) -> None:
    run = await here.start(replace(FAR, max_draft_tokens=0))
    run.cancel()


@pytest.mark.parametrize("leave", [cancel_in_mid_run, leave_in_mid_run, never_read])
def test_a_run_that_is_given_up_frees_every_block(oracle: OracleService, leave: Any) -> None:
    async def scenario() -> None:
        async with session(oracle) as here:
            await leave(here)
            await here.wait_until_ended(num_cancelled=2, num_finished=0)

    oracle.will_answer([f"line {number}" for number in range(60)])
    oracle.runner.step_s = 0.01
    asyncio.run(scenario())


def test_a_task_that_is_cancelled_frees_every_block(oracle: OracleService) -> None:
    async def scenario() -> None:
        async with session(oracle) as here:
            events = EventStream()
            edit = replace(FAR, max_draft_tokens=0)
            working = asyncio.create_task(here.pipeline.apply(edit, events))
            await events.wait_until_begun()
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            await here.wait_until_ended(num_cancelled=2, num_finished=0)

    oracle.will_answer([f"line {number}" for number in range(60)])
    oracle.runner.step_s = 0.01
    asyncio.run(scenario())


def test_a_queue_that_takes_only_one_region_is_left_with_none(tiny_model_dir: Path) -> None:
    crowded = OracleService(
        tiny_model_dir,
        max_position=40_000,
        num_blocks=4096,
        max_waiting=1,
        max_running=1,
        max_file_bytes=MAX_FILE_BYTES,
    )
    one = make_edit(LARGE, far_update("part_03"))

    async def scenario() -> None:
        async with session(crowded) as here:
            crowded.runner.gate.clear()
            running = await here.start(replace(one, has_fallback=False))
            while here.engine.stats().num_running == 0:
                await asyncio.sleep(0.005)
            with pytest.raises(QueueFullError):
                await here.start(FAR)
            crowded.runner.gate.set()
            check_items(await here.follow(running))
            await here.wait_until_ended(num_cancelled=1, num_finished=1)

    plan = make_plan(one)
    teach(crowded, plan, tries_of(plan, crowded)[0])
    asyncio.run(scenario())


def test_a_queue_that_is_full_for_a_wider_try_leaves_the_best_so_far(
    oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> list[Any]:
        async with session(oracle) as here:
            run = await here.start(UNSURE)

            def refuse(_request: object) -> None:
                raise QueueFullError("the queue is full")

            monkeypatch.setattr(here.engine, "submit", refuse)
            return await here.follow(run)

    items = asyncio.run(scenario())
    check_items(items)
    assert not any(isinstance(item, RegionRestart) for item in items)
    result = outcome_of(items)
    assert (result.verdict.status, result.source) == ("needs_review", "merge")
    (dropped,) = [one for one in result.verdict.findings if one.code == "retry_dropped"]
    assert "too busy" in dropped.message


class ShowsLinesOfFilesOnly:
    """A profile that knows the tokens of lines only where it is shown the whole large file."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._profile, name)

    def build(self, request: PromptRequest) -> Prompt:
        prompt = self._profile.build(request)
        is_part = len(request.original_lines) < LARGE.count("\n")
        return replace(prompt, merge_form=None) if is_part else prompt


BOUND = replace(UNSURE, constraint="merge")


@pytest.fixture
def half_blind(oracle: OracleService) -> OracleService:
    oracle.profile = ShowsLinesOfFilesOnly(oracle.profile)
    return oracle


def test_where_no_merge_can_be_offered_a_wider_try_comes_first(half_blind: OracleService) -> None:
    plan = make_plan(BOUND)
    assert plan.merge is not None
    half_blind.will_answer(merge_of(plan))
    half_blind.runner.sureness = 0.999
    items = run_edit(half_blind, BOUND)
    result = outcome_of(items)
    assert (result.scope, result.verdict.status) == ("file", "applied")
    assert result.confidence == pytest.approx(0.999 * plan.merge.mass)
    assert sum(isinstance(item, RegionStarted) for item in items) == 1


def test_where_none_can_be_offered_at_all_the_model_writes_freely_and_it_is_said(
    half_blind: OracleService,
) -> None:
    edit = replace(BOUND, scope="region")
    plan = make_plan(edit)
    assert plan.merge is not None
    teach(half_blind, plan, tries_of(plan, half_blind)[0])
    result = outcome_of(run_edit(half_blind, edit))
    assert (result.verdict.status, result.source, result.scope) == (
        "needs_review",
        "model",
        "region",
    )
    assert list(result.lines) == merge_of(plan)
    assert result.confidence == plan.merge.certainty
    codes = [finding.code for finding in result.verdict.findings]
    assert codes == ["ambiguous_place", "no_valid_merge"]
    free = outcome_of(run_edit(half_blind, replace(edit, constraint="none")))
    assert [finding.code for finding in free.verdict.findings] == ["ambiguous_place"]


def test_what_is_written_freely_in_vain_leaves_the_merge(half_blind: OracleService) -> None:
    items = run_edit(half_blind, replace(BOUND, scope="region"))
    result = outcome_of(items)
    assert (result.source, result.verdict.status) == ("merge", "needs_review")
    assert "no_valid_merge" not in {finding.code for finding in result.verdict.findings}
    num_tries = len(tries_of(make_plan(replace(BOUND, scope="region")), half_blind))
    assert sum(isinstance(item, RegionStarted) for item in items) == num_tries


def test_a_run_whose_every_try_is_rejected_is_rejected(
    oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conclusion, "try_merge", lambda _: None)
    oracle.will_answer(["again()"], is_ended=False)
    items = run_edit(oracle, UNSURE)
    result = outcome_of(items)
    assert result.verdict.status == "rejected"
    started = [item.index for item in items if isinstance(item, RegionStarted)]
    restarted = [item.index for item in items if isinstance(item, RegionRestart)]
    assert restarted == started[:-1]
    assert 1 < len(started) <= len(tries_of(make_plan(UNSURE), oracle))
