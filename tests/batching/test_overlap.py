"""What the engine does while a device computes: on the CPU, with steps that say they take long."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine_runs import RunningEngine, ScriptedProposer

from batching.config import EngineConfig, SchedulerConfig
from batching.engine import Engine, build_engine
from batching.errors import StepFailedError
from batching.events import Cancelled, Failed, Tokens
from batching.pending_step import PendingStep
from batching.request import EngineRequest, SamplingParams
from batching.step_plan import StepPlan, StepResult
from lookup.proposer import Draft

MAX_RUNNING = 2
NUM_LOOKS = 12  # how often a step is looked at before it is done
CONFIG = SchedulerConfig(max_tokens_per_step=24, max_running=MAX_RUNNING, max_draft_tokens=6)


class LongStep:
    """A step that was computed at once and is only done after some looks at it."""

    leaves_time = True

    def __init__(self, runner: LongRunner, done: PendingStep) -> None:
        self._runner = runner
        self._done = done
        self._num_looks = 0
        self.seconds = 1e-3

    def is_done(self) -> bool:
        self._num_looks += 1
        self._runner.on_look(self._num_looks)
        return self._num_looks > NUM_LOOKS

    def wait(self) -> StepResult:
        self._runner.num_under_way -= 1
        self._runner.on_wait()
        return self._done.wait()


class LongRunner:
    """Puts long steps in the place of those of an engine's own runner."""

    def __init__(self, engine: Engine) -> None:
        self._launch = engine._runner.launch
        self.num_under_way = 0
        self.most_under_way = 0
        self.num_steps = 0
        self.on_look: Callable[[int], None] = lambda _look: None
        self.on_wait: Callable[[], None] = lambda: None

    @property
    def is_under_way(self) -> bool:
        return self.num_under_way > 0

    def launch(self, plan: StepPlan) -> LongStep:
        self.num_under_way += 1
        self.most_under_way = max(self.most_under_way, self.num_under_way)
        self.num_steps += 1
        return LongStep(self, self._launch(plan))


class WatchedProposer(ScriptedProposer):
    """Notes which of its work is done while a step is under way."""

    def __init__(self, script: Sequence[int], runner: LongRunner) -> None:
        super().__init__(script)
        self._runner = runner
        self.builds: list[bool] = []
        self.proposals: list[bool] = []

    def build(self) -> None:
        self.builds.append(self._runner.is_under_way)

    def propose(self, max_tokens: int) -> Draft:
        self.proposals.append(self._runner.is_under_way)
        return super().propose(max_tokens)


@contextmanager
def long_engine(model_dir: Path) -> Iterator[tuple[Engine, LongRunner]]:
    """An engine with long steps that has not been started; stopped at the end."""
    engine = build_engine(
        EngineConfig(model_path=model_dir, kv_memory_bytes=1 << 20, scheduler=CONFIG)
    )
    runner = LongRunner(engine)
    engine._runner.launch = runner.launch  # type: ignore[method-assign,assignment]
    try:
        yield engine, runner
    finally:
        engine.stop()


@contextmanager
def two_lanes(model_dir: Path) -> Iterator[tuple[Engine, LongRunner]]:
    """The same, with two steps under way whenever there are requests for two."""
    with long_engine(model_dir) as (engine, runner):
        engine._lanes.choose = lambda num_requests: 2  # type: ignore[method-assign]
        yield engine, runner


def make_request(name: str, num_prompt: int = 9, max_tokens: int = 12) -> EngineRequest:
    generator = random.Random(name)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(num_prompt)),
        sampling=SamplingParams(max_tokens=max_tokens),
    )


@pytest.fixture(scope="module")
def requests() -> list[EngineRequest]:
    return [make_request(f"request-{index}", 9 + 25 * (index % 2)) for index in range(5)]


@pytest.fixture(scope="module")
def answers(tiny_model_dir: Path, requests: list[EngineRequest]) -> list[list[int]]:
    """What steps that are over at once write."""
    engine = build_engine(
        EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20, scheduler=CONFIG)
    )
    try:
        return [outcome.token_ids for outcome in RunningEngine(engine).run(requests)]
    finally:
        engine.stop()


def run_drafting(
    engine: Engine,
    runner: LongRunner,
    requests: Sequence[EngineRequest],
    answers: Sequence[list[int]],
) -> list[WatchedProposer]:
    """Runs all requests with drafts of their answers, which they must write; their proposers."""
    proposers = [WatchedProposer(answer, runner) for answer in answers]
    drafting = [
        dataclasses.replace(request, proposer=proposer)
        for request, proposer in zip(requests, proposers, strict=True)
    ]
    outcomes = RunningEngine(engine).run(drafting)
    stats = engine.stats()
    assert [outcome.token_ids for outcome in outcomes] == answers
    assert stats.accepted == stats.drafted > 0
    assert stats.num_free_blocks == stats.num_blocks
    return proposers


def test_answers_are_the_same_and_drafts_do_not_wait(
    tiny_model_dir: Path, requests: list[EngineRequest], answers: list[list[int]]
) -> None:
    with long_engine(tiny_model_dir) as (engine, runner):
        proposers = run_drafting(engine, runner, requests, answers)
    assert runner.most_under_way == 1
    assert all(len(proposer.builds) == 1 for proposer in proposers)
    # Those that had to wait were indexed and drafted for beside the steps of the others; what
    # depends on a step that was just waited for is drafted behind it.
    assert all(proposer.builds[0] and proposer.proposals[0] for proposer in proposers[MAX_RUNNING:])
    assert not all(proposers[-1].proposals)


def test_a_long_prompt_has_its_first_draft_before_its_last_chunk_is_done(
    tiny_model_dir: Path,
) -> None:
    with long_engine(tiny_model_dir) as (engine, runner):
        proposer = WatchedProposer([1, 2, 3], runner)
        request = dataclasses.replace(make_request("long", 60), proposer=proposer)
        RunningEngine(engine).run([request])
    assert proposer.proposals[0]


def test_requests_are_taken_in_beside_a_step_and_cancels_wait_for_its_end(
    tiny_model_dir: Path,
) -> None:
    waiting: list[int] = []
    with long_engine(tiny_model_dir) as (engine, runner):

        def arrive_and_cancel(look: int) -> None:
            if runner.num_steps == 2 and look == 1:
                running.submit(make_request("late"))
                running.submit(make_request("later"))
                engine.cancel("first")
                engine.cancel("later")

        def count_waiting() -> None:
            if runner.num_steps == 2:
                waiting.append(engine.stats().num_waiting)

        runner.on_look, runner.on_wait = arrive_and_cancel, count_waiting
        running = RunningEngine(engine)
        running.submit(make_request("first", max_tokens=200))
        outcomes = running.wait_all()
        stats = engine.stats()
    assert waiting == [2]
    assert isinstance(outcomes["first"].last, Cancelled)
    assert isinstance(outcomes["later"].last, Cancelled)
    assert outcomes["late"].finished.reason == "length"
    assert stats.num_free_blocks == stats.num_blocks


def test_events_are_told_while_the_next_step_is_under_way(tiny_model_dir: Path) -> None:
    told: list[tuple[str, bool]] = []
    with long_engine(tiny_model_dir) as (engine, runner):
        running = RunningEngine(engine)
        publish = engine._publish

        def note(event: object) -> None:
            told.append((type(event).__name__, runner.is_under_way))
            publish(event)  # type: ignore[arg-type]

        engine._publish = note
        running.run([make_request("only", max_tokens=5)])
    # Behind the last step nothing follows that it could be told beside.
    assert told == [("Tokens", True)] * 4 + [("Tokens", False), ("Finished", False)]


def test_an_error_that_is_seen_at_the_end_fails_the_step_behind_all_held_events(
    tiny_model_dir: Path,
) -> None:
    with long_engine(tiny_model_dir) as (engine, runner):

        def fail_once() -> None:
            if runner.num_steps == 4:
                raise RuntimeError("device lost")

        runner.on_wait = fail_once
        running = RunningEngine(engine)
        running.submit(make_request("only"))
        events = [running.take_event() for _ in range(4)]
        (after,) = running.run([make_request("next")])
    assert [type(event) for event in events] == [Tokens] * 3 + [Failed]
    assert isinstance(events[-1], Failed)
    assert isinstance(events[-1].error, StepFailedError)
    assert len(after.token_ids) == 12


def test_with_two_lanes_the_answers_are_the_same(
    tiny_model_dir: Path, requests: list[EngineRequest], answers: list[list[int]]
) -> None:
    with two_lanes(tiny_model_dir) as (engine, runner):
        run_drafting(engine, runner, requests, answers)
    assert runner.most_under_way == 2


def test_a_request_that_is_withdrawn_in_flight_ends_with_its_step(tiny_model_dir: Path) -> None:
    with two_lanes(tiny_model_dir) as (engine, runner):
        runner.on_look = lambda look: engine.cancel("first") if runner.num_steps == 4 else None
        running = RunningEngine(engine)
        for name in ("first", "second"):
            running.submit(make_request(name, max_tokens=60))
        outcomes = running.wait_all()
        stats = engine.stats()
    assert isinstance(outcomes["first"].last, Cancelled)
    assert len(outcomes["second"].token_ids) == 60
    assert stats.num_free_blocks == stats.num_blocks


def test_a_step_that_fails_takes_none_of_the_other_lane_along(tiny_model_dir: Path) -> None:
    with two_lanes(tiny_model_dir) as (engine, runner):

        def fail_once() -> None:
            if runner.num_steps == 6 and runner.most_under_way == 2:
                runner.on_wait = lambda: None
                raise RuntimeError("device lost")

        runner.on_wait = fail_once
        running = RunningEngine(engine)
        for name in ("first", "second"):
            running.submit(make_request(name, max_tokens=60))
        outcomes = running.wait_all()
        stats = engine.stats()
    ends = sorted(type(outcome.last).__name__ for outcome in outcomes.values())
    assert ends == ["Failed", "Finished"]
    assert stats.num_free_blocks == stats.num_blocks


def test_an_engine_that_is_stopped_waits_for_both_lanes(tiny_model_dir: Path) -> None:
    with two_lanes(tiny_model_dir) as (engine, runner):
        running = RunningEngine(engine)
        for name in ("first", "second"):
            running.submit(make_request(name, max_tokens=2000))
        running.take_event()
        engine.stop()
        outcomes = running.wait_all()
        assert not runner.is_under_way
        assert engine.stats().num_free_blocks == engine.stats().num_blocks
    assert all(isinstance(outcome.last, Failed) for outcome in outcomes.values())
