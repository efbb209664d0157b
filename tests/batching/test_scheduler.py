"""The scheduler driven without a model: whatever happens, each request gets its own answer once."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from oracles.engine.erratic_costs import ErraticCosts
from oracles.engine.target_runner import NoisyProposer, TargetRunner, make_target

from batching.block_pool import BlockPool
from batching.cache.host_tier import HostTier
from batching.cache.prefix_cache import PrefixCache
from batching.cache.prefix_load import PrefixLoad
from batching.config import SchedulerConfig
from batching.errors import DeadlineExceededError, EngineStoppedError, StepFailedError
from batching.events import Cancelled, Event, Failed, Finished, RequestStats, Tokens
from batching.request import EngineRequest, Priority, SamplingParams
from batching.scheduler import Scheduler
from batching.step_costs import StepCosts
from batching.step_plan import ScheduledRequest, StepPlan, StepResult

BLOCK_SIZE = 4
MAX_IDLE_STEPS = 2000


class SchedulerRun:
    """A scheduler with its pool, a runner that checks every plan, a clock, and all events."""

    def __init__(
        self,
        *,
        num_blocks: int = 64,
        costs: StepCosts | None = None,
        step_s: Callable[[int], float] = lambda num_tokens: 0.0,
        **limits: int | float,
    ) -> None:
        self.config = SchedulerConfig(
            **{"block_size": BLOCK_SIZE, "max_tokens_per_step": 32, "max_running": 8, **limits}
        )
        self.pool = BlockPool(num_blocks)
        prefix_cache = PrefixCache(self.pool, block_size=BLOCK_SIZE, model_fingerprint="model")
        self.scheduler = Scheduler(
            self.config, block_pool=self.pool, prefix_cache=prefix_cache, costs=costs
        )
        self.runner = TargetRunner(num_blocks=num_blocks, block_size=BLOCK_SIZE)
        self.now = 100.0
        self._step_s = step_s
        self.targets: dict[str, list[int]] = {}
        self.outputs: dict[str, list[int]] = {}
        self.last_events: dict[str, Event] = {}
        self.order: list[str] = []
        self._num_preemptions = 0
        self._num_computed: dict[str, int] = {}
        self._requests: dict[str, EngineRequest] = {}

    def submit(
        self, name: str, prompt: Sequence[int], max_tokens: int, **changes: object
    ) -> NoisyProposer:
        """Add a request that drafts its target with one token in five wrong, unless told else."""
        error_rate = changes.pop("error_rate", 0.2)
        target = make_target(prompt, max_tokens)
        proposer = NoisyProposer(target, error_rate=error_rate, seed=len(self.targets))
        request = EngineRequest(
            request_id=name,
            prompt_token_ids=tuple(prompt),
            sampling=SamplingParams(max_tokens=max_tokens),
            proposer=proposer,
        )
        request = dataclasses.replace(request, **changes)
        self.runner.track(request)
        self._requests[name] = request
        self.targets[name] = target
        self.outputs[name] = []
        self.scheduler.add(request, now=self.now)
        return proposer

    @property
    def live(self) -> list[str]:
        return [name for name in self.targets if name not in self.last_events]

    def schedule(self) -> StepPlan:
        """The next plan, checked for what must hold of every plan."""
        plan = self.scheduler.schedule(self.now)
        self.pool.check_invariants()
        has_preempted = self.scheduler.num_preemptions > self._num_preemptions
        names = [scheduled.request_id for scheduled in plan.scheduled]
        assert len(set(names)) == len(names) <= self.scheduler.num_running
        assert bool(names) == bool(self.scheduler.num_running), "nobody gets a row for nothing"
        assert len(names) <= self.config.max_running
        assert plan.num_tokens <= self.config.max_tokens_per_step
        assert self.scheduler.num_running + self.scheduler.num_waiting == len(self.live)
        for scheduled in plan.scheduled:
            assert len(scheduled.draft_token_ids) <= self.config.max_draft_tokens
            if not has_preempted:
                self._check_continues(scheduled)
        self._num_preemptions = self.scheduler.num_preemptions
        self._num_computed = {}
        return plan

    def step(self) -> StepPlan:
        """One whole step."""
        self.record(self.scheduler.expire(self.now))
        plan = self.schedule()
        assert plan.scheduled or not self.live, "work is left but nothing is planned"
        result = self.runner.execute(plan)
        step_s = self._step_s(plan.num_tokens)
        self.now += step_s
        self.record(self.scheduler.commit(plan, result, now=self.now, step_s=step_s))
        self.pool.check_invariants()
        self._num_computed = {
            scheduled.request_id: scheduled.start + len(scheduled.token_ids) + verified.num_accepted
            for scheduled, verified in zip(plan.scheduled, result.verified, strict=True)
            if verified.token_ids
        }
        return plan

    def run(self) -> None:
        """Step until nobody is left, then check that everything is as at the start."""
        for _ in range(MAX_IDLE_STEPS):
            if not self.live:
                break
            self.step()
            self.now += 0.01
        self.check_ended()

    def record(self, events: Sequence[Event]) -> None:
        for event in events:
            name = event.request_id
            assert name not in self.last_events, f"an event after the last one: {event}"
            if isinstance(event, Tokens):
                assert event.token_ids
                self.outputs[name] += event.token_ids
                length = len(self.outputs[name])
                assert self.outputs[name] == self.targets[name][:length]
            else:
                self.last_events[name] = event
                self.order.append(name)

    def check_ended(self) -> None:
        assert not self.live
        assert self.scheduler.num_running == self.scheduler.num_waiting == 0
        assert not self.scheduler.schedule(self.now).scheduled
        self.pool.check_invariants()
        assert self.pool.num_free_blocks == self.pool.num_blocks
        for name, event in self.last_events.items():
            if isinstance(event, Finished):
                assert self.outputs[name] == self.targets[name]
                assert event.stats.num_output_tokens == len(self.targets[name])
                self._check_losses(name, event.stats)

    def _check_losses(self, name: str, stats: RequestStats) -> None:
        """What passes brought and what they lost is all that they could bring."""
        request = self._requests[name]
        if request.proposer is None:
            assert sum(stats.losses.by_cause.values()) == 0
            return
        most = stats.decode_passes * (request.max_draft_tokens + 1)
        assert stats.num_output_tokens + sum(stats.losses.by_cause.values()) == most
        assert min(stats.losses.by_cause.values()) >= 0

    def _check_continues(self, scheduled: ScheduledRequest) -> None:
        """A request that wrote in the last step has its newest token to compute and no other."""
        num_computed = self._num_computed.get(scheduled.request_id)
        if num_computed is not None:
            assert scheduled.start == num_computed
            assert len(scheduled.token_ids) == 1


def make_prompt(seed: int, num_tokens: int) -> tuple[int, ...]:
    generator = random.Random(seed)
    return tuple(generator.randrange(50) for _ in range(num_tokens))


class TwoLaneRun(SchedulerRun):
    """Two steps are under way while there are requests for two; the first is committed first."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._flights: deque[tuple[StepPlan, StepResult]] = deque()
        self.num_overlapping = 0

    @property
    def in_flight(self) -> set[str]:
        return {one.request_id for plan, _ in self._flights for one in plan.scheduled}

    def schedule(self) -> StepPlan:
        """The next plan; nobody is in two steps, and nothing is written that another one reads."""
        in_flight = self.in_flight
        plan = self.scheduler.schedule(self.now, num_lanes=2)
        self.pool.check_invariants()
        assert self.scheduler.num_running + self.scheduler.num_waiting == len(self.live)
        names = [one.request_id for one in plan.scheduled]
        assert in_flight.isdisjoint(names)
        assert len(names) <= -(-self.config.max_running // 2)
        read = {
            block
            for other, _ in self._flights
            for one in other.scheduled
            for block in one.block_ids
        }
        for one in plan.scheduled:
            assert read.isdisjoint(one.block_ids[one.start // BLOCK_SIZE :])
        return plan

    def launch(self) -> bool:
        plan = self.schedule()
        if plan.scheduled:
            self._flights.append((plan, self.runner.execute(plan)))
            self.num_overlapping += len(self._flights) > 1
        return bool(plan.scheduled)

    def step(self) -> StepPlan:
        self.record(self.scheduler.expire(self.now))
        self.record(self.scheduler.settle(self.now))
        while len(self._flights) < 2 and self.launch():
            pass
        assert self._flights or not self.live, "work is left but nothing is planned"
        return self.land() if self._flights else StepPlan(())

    def land(self) -> StepPlan:
        """Commit the first step."""
        plan, result = self._flights.popleft()
        self.record(self.scheduler.commit(plan, result, now=self.now))
        self.pool.check_invariants()
        return plan

    def land_all(self) -> None:
        while self._flights:
            self.land()


class SchedulerMachine(RuleBasedStateMachine):
    """Arrivals, withdrawals, deadlines and failed steps in any order, over a pool that is tiny."""

    run_type: type[SchedulerRun] = SchedulerRun

    def __init__(self) -> None:
        super().__init__()
        self.run = self.run_type(
            num_blocks=14,
            costs=ErraticCosts(1),
            max_tokens_per_step=12,
            max_running=5,
            max_draft_tokens=6,
            ageing_s=5.0,
        )

    @rule(
        num_shared=st.sampled_from([0, 4, 9, 16]),
        num_own=st.integers(1, 20),
        max_tokens=st.integers(1, 20),
        error_rate=st.sampled_from([0.0, 0.3, 1.0]),
        priority=st.sampled_from(Priority),
        lifetime_s=st.none() | st.floats(0.0, 8.0),
        salt=st.sampled_from([b"", b"tenant"]),
    )
    def submit(self, num_shared: int, num_own: int, max_tokens: int, **changes: object) -> None:
        count = len(self.run.targets)
        lifetime_s = changes.pop("lifetime_s")
        deadline = None if lifetime_s is None else self.run.now + lifetime_s
        self.run.submit(
            f"r{count}",
            make_prompt(0, num_shared) + make_prompt(count + 1, num_own),
            max_tokens,
            cache_salt=changes.pop("salt"),
            deadline=deadline,
            **changes,
        )

    @rule(num_steps=st.integers(1, 6))
    def step(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.run.step()
            self.run.now += 0.2

    @rule(index=st.integers(0, 100))
    def cancel(self, index: int) -> None:
        if self.run.live:
            name = self.run.live[index % len(self.run.live)]
            self.run.record(self.run.scheduler.cancel(name))
            assert isinstance(self.run.last_events[name], Cancelled)

    @rule()
    def cancel_what_has_ended(self) -> None:
        for name in [*self.run.last_events, "unknown"]:
            assert not self.run.scheduler.cancel(name)

    @rule()
    def fail_a_step(self) -> None:
        plan = self.run.schedule()
        events = self.run.scheduler.fail_step(plan, StepFailedError("broken"))
        assert {event.request_id for event in events} == {s.request_id for s in plan.scheduled}
        self.run.record(events)

    @rule(seconds=st.floats(0.0, 6.0))
    def wait(self, seconds: float) -> None:
        self.run.now += seconds

    def teardown(self) -> None:
        self.run.run()


class TwoLaneMachine(SchedulerMachine):
    """The same beside a step that is under way."""

    run_type = TwoLaneRun
    run: TwoLaneRun

    @rule()
    def fail_a_step(self) -> None:
        """A step is planned and then fails; the one under way goes on."""
        if len(self.run._flights) < 2:
            super().fail_a_step()

    @rule(index=st.integers(0, 100))
    def cancel(self, index: int) -> None:
        if not self.run.live:
            return
        name = self.run.live[index % len(self.run.live)]
        is_in_flight = name in self.run.in_flight
        self.run.record(self.run.scheduler.cancel(name))
        assert is_in_flight == (name in self.run.live)
        if is_in_flight:
            self.run.land_all()
        assert isinstance(self.run.last_events[name], Cancelled)

    @rule()
    def land(self) -> None:
        self.run.land_all()


TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestTwoLanes = TwoLaneMachine.TestCase
TestTwoLanes.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_two_lanes_share_all_requests_and_each_writes_what_it_must() -> None:
    run = TwoLaneRun(num_blocks=24, max_tokens_per_step=24, max_running=6, max_draft_tokens=4)
    for i in range(20):
        run.submit(f"r{i}", make_prompt(i, 3 + 2 * (i % 7)), 6 + i % 9)
    sizes = []
    while run.live:
        sizes.append(len(run.step().scheduled))
    run.check_ended()
    assert run.num_overlapping > 10
    assert max(sizes) == 3
    assert run.scheduler.num_preemptions > 0
    assert all(isinstance(event, Finished) for event in run.last_events.values())


@pytest.mark.parametrize("seed", range(30))
def test_a_long_mixed_load_ends_well(seed: int) -> None:
    generator = random.Random(seed)
    run = SchedulerRun(
        num_blocks=16, max_tokens_per_step=12, max_running=6, max_draft_tokens=8, ageing_s=2.0
    )
    for i in range(60):
        num_shared = generator.choice([0, 4, 9, 16])
        run.submit(
            f"r{i}",
            make_prompt(0, num_shared) + make_prompt(i + 1, generator.randint(1, 20)),
            generator.randint(1, 24),
            error_rate=generator.choice([0.0, 0.3, 1.0]),
            priority=generator.choice(list(Priority)),
            deadline=run.now + generator.uniform(0.5, 4.0) if generator.random() < 0.3 else None,
            cache_salt=generator.choice([b"", b"tenant"]),
        )
        if generator.random() < 0.2:
            run.record(run.scheduler.cancel(generator.choice(run.live)))
        for _ in range(generator.randint(0, 6)):
            run.step()
            run.now += 0.1
    run.run()
    assert run.scheduler.num_preemptions > 5
    kinds = {type(event) for event in run.last_events.values()}
    assert kinds == {Finished, Failed, Cancelled}


@pytest.mark.parametrize("error_rate", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("max_tokens_per_step", [8, 33, 512])
@pytest.mark.parametrize("costs", [None, ErraticCosts(1), ErraticCosts(2)])
def test_the_answer_does_not_depend_on_drafts_or_budget(
    error_rate: float, max_tokens_per_step: int, costs: StepCosts | None
) -> None:
    run = SchedulerRun(num_blocks=200, max_tokens_per_step=max_tokens_per_step, costs=costs)
    for i in range(8):
        run.submit(f"r{i}", make_prompt(i, 5 + 7 * i), 30 - i, error_rate=error_rate)
    run.run()
    assert all(isinstance(event, Finished) for event in run.last_events.values())


def test_a_request_waits_for_its_load_and_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SchedulerRun()
    load = PrefixLoad(
        HostTier(value_bytes=1, max_bytes=1, allocate=memoryview), first_chunk=0, names=()
    )
    monkeypatch.setattr(PrefixCache, "begin_load", lambda *_: load)
    run.submit("waits", make_prompt(1, 9), 3)
    run.now += 0.5
    assert not run.schedule().scheduled
    run.now += 2.0
    assert not run.schedule().scheduled
    load.finish()
    run.now += 1.0
    run.run()
    stats = run.last_events["waits"].stats
    assert (stats.queue_s, stats.load_s) == (3.5, 3.0)


def test_right_drafts_save_steps() -> None:
    passes = {}
    for error_rate in (0.0, 0.5, 1.0):
        run = SchedulerRun(max_tokens_per_step=128)
        run.submit("r", make_prompt(1, 10), 60, error_rate=error_rate)
        run.run()
        stats = run.last_events["r"].stats
        passes[error_rate] = stats.decode_passes
        assert stats.accepted + stats.decode_passes == 60
    assert passes[0.0] == 1, "59 drafts and the bonus token come with the prompt"
    assert passes[0.0] < passes[0.5] < passes[1.0] == 60


def test_without_a_proposer_or_drafts_nothing_is_drafted() -> None:
    run = SchedulerRun()
    run.submit("no proposer", make_prompt(1, 9), 12, proposer=None)
    run.submit("no drafts", make_prompt(2, 9), 12, max_draft_tokens=0)
    run.run()
    for event in run.last_events.values():
        assert event.stats.drafted == 0
        assert event.stats.decode_passes == 12


def test_a_long_prompt_is_computed_in_pieces_beside_running_requests() -> None:
    run = SchedulerRun(max_tokens_per_step=16)
    run.submit("short", make_prompt(1, 4), 30, error_rate=1.0)
    run.step()
    run.submit("long", make_prompt(2, 100), 5)
    num_outputs = []
    while not run.outputs["long"]:
        run.step()
        num_outputs.append(len(run.outputs["short"]))
    assert len(num_outputs) > 5
    assert num_outputs == list(range(2, len(num_outputs) + 2)), "the short one wrote in each step"
    run.run()
    assert run.last_events["long"].stats.target_passes > 5


def test_a_pool_too_small_for_all_preempts_and_everybody_finishes() -> None:
    run = SchedulerRun(num_blocks=10)
    for i in range(6):
        run.submit(f"r{i}", make_prompt(i, 8), 24)
    run.run()
    assert run.scheduler.num_preemptions > 0
    assert all(isinstance(event, Finished) for event in run.last_events.values())


def test_a_preempted_request_finds_what_it_had_computed() -> None:
    run = SchedulerRun(num_blocks=16, max_running=1)
    proposer = run.submit("batch", make_prompt(1, 20), 20, priority=Priority.BATCH)
    while len(run.outputs["batch"]) < 6:
        run.step()
    run.submit("urgent", make_prompt(2, 4), 2)
    run.step()
    assert run.scheduler.num_preemptions == 1
    before = run.runner.num_computed_rows
    run.run()
    assert run.order == ["urgent", "batch"]
    assert proposer.num_builds == 1
    assert run.runner.num_computed_rows - before < 20 + 20, "the prompt was not computed again"
    assert run.last_events["batch"].stats.num_cached_tokens == 0, "its own tokens are no hit"


def test_interactive_requests_start_before_batch_requests() -> None:
    run = SchedulerRun(max_running=1)
    run.submit("batch", make_prompt(1, 6), 4, priority=Priority.BATCH)
    run.submit("second", make_prompt(2, 6), 4)
    run.now += 0.1
    run.submit("third", make_prompt(3, 6), 4)
    run.run()
    assert run.order == ["second", "third", "batch"]


def test_an_interactive_request_takes_the_place_of_a_running_batch_request() -> None:
    run = SchedulerRun(max_running=2)
    for i in range(2):
        run.submit(f"batch {i}", make_prompt(i, 6), 30, priority=Priority.BATCH, error_rate=1.0)
    run.step()
    run.submit("urgent", make_prompt(5, 6), 2, error_rate=1.0)
    assert "urgent" in [scheduled.request_id for scheduled in run.step().scheduled]
    run.run()
    assert run.order[0] == "urgent"


def test_a_batch_request_that_has_waited_long_is_served_first() -> None:
    run = SchedulerRun(max_running=1, ageing_s=10.0)
    run.submit("batch", make_prompt(1, 6), 4, priority=Priority.BATCH)
    run.now += 9.0
    run.submit("interactive", make_prompt(2, 6), 20, error_rate=1.0)
    run.step()
    assert run.outputs["interactive"]
    assert not run.outputs["batch"]
    run.now += 1.5
    run.submit("later", make_prompt(3, 6), 4)
    run.run()
    assert run.order.index("batch") < run.order.index("later")


def test_batch_requests_are_not_starved_by_a_stream_of_interactive_ones() -> None:
    run = SchedulerRun(max_running=1, ageing_s=10.0)
    run.submit("batch", make_prompt(1, 6), 4, priority=Priority.BATCH)
    for i in range(30):
        run.submit(f"r{i}", make_prompt(i + 2, 6), 3, error_rate=1.0)
        run.step()
        run.now += 1.0
    assert isinstance(run.last_events["batch"], Finished)
    assert len(run.live) > 0
    run.run()


def test_batch_requests_get_no_rows_beside_interactive_ones() -> None:
    run = SchedulerRun(num_blocks=128, max_tokens_per_step=64)
    for i in range(3):
        run.submit(f"batch {i}", make_prompt(i, 6), 30, priority=Priority.BATCH, error_rate=1.0)
    for _ in range(3):
        assert len(run.step().scheduled) == 3
    run.submit("urgent", make_prompt(5, 20), 12, error_rate=1.0)
    num_written = [len(run.outputs[f"batch {i}"]) for i in range(3)]
    num_steps = 0
    while "urgent" in run.live:
        assert [scheduled.request_id for scheduled in run.step().scheduled] == ["urgent"]
        num_steps += 1
    assert num_steps == 12, "as many as it would have taken alone"
    assert run.scheduler.num_preemptions == 0, "they keep what they have computed"
    assert [len(run.outputs[f"batch {i}"]) for i in range(3)] == num_written
    assert len(run.step().scheduled) == 3
    run.run()


def test_one_batch_request_at_a_time_grows_into_the_class_above() -> None:
    run = SchedulerRun(num_blocks=256, ageing_s=10.0)
    for i in range(3):
        run.submit(f"batch {i}", make_prompt(i, 6), 4, priority=Priority.BATCH, error_rate=1.0)
        run.now += 0.1
    ends: dict[str, float] = {}
    for i in range(60):
        run.submit(f"r{i}", make_prompt(i + 3, 6), 3, error_rate=1.0)
        for _ in range(2):
            plan = run.step()
            assert sum("batch" in one.request_id for one in plan.scheduled) <= 1
            ends.update({name: run.now for name in run.last_events if name not in ends})
            run.now += 0.5
    times = [ends[f"batch {i}"] - 100.0 for i in range(3)]
    assert 10.0 <= times[0] <= 13.0
    assert all(10.0 <= later - earlier <= 14.0 for earlier, later in itertools.pairwise(times))
    run.run()


def test_steps_of_batch_requests_are_short_while_interactive_ones_may_come() -> None:
    run = SchedulerRun(num_blocks=4096, max_tokens_per_step=512, step_s=lambda n: 0.002 * n)
    run.submit("batch", make_prompt(1, 6000), 4, priority=Priority.BATCH)
    assert run.step().num_tokens == 512, "nobody else has been there"
    run.submit("urgent", make_prompt(2, 6), 2)
    while "urgent" in run.live:
        run.step()
    sizes = [run.step().num_tokens for _ in range(40)]
    assert all(0.03 <= 0.002 * size <= 0.07 for size in sizes[10:]), sizes
    run.now += 61.0
    assert run.step().num_tokens == 512
    run.run()


def test_requests_share_the_seconds_of_the_steps_that_they_are_in() -> None:
    """However many run together and whoever ends last, their shares are the seconds in all."""
    run = SchedulerRun(num_blocks=256, step_s=lambda n: 0.01 * n)
    for number in range(6):
        run.submit(f"r{number}", make_prompt(number + 1, 12), 3 * number + 2)
    while run.live:
        run.step()
    stats = [event.stats for event in run.last_events.values() if isinstance(event, Finished)]
    shares = [one.prefill_share_s + one.decode_share_s for one in stats]
    assert sum(shares) == pytest.approx(run.now - 100.0)
    assert sum(one.prefill_s + one.decode_s for one in stats) > 2 * sum(shares)
    assert all(one.prefill_share_s > 0 for one in stats)


def test_nobody_is_preempted_for_a_request_that_would_not_fit_anyway() -> None:
    run = SchedulerRun(num_blocks=10, max_running=4)
    run.submit("old", make_prompt(1, 20), 2, error_rate=1.0)
    run.step()
    run.submit("batch", make_prompt(2, 5), 3, priority=Priority.BATCH, error_rate=1.0)
    run.step()
    run.submit("large", make_prompt(3, 30), 2)
    run.step()
    assert run.scheduler.num_preemptions == 0
    run.run()


def test_nobody_is_preempted_for_what_the_prefix_cache_holds() -> None:
    run = SchedulerRun(num_blocks=12, max_running=4)
    prompt = make_prompt(1, 24)
    run.submit("first", prompt, 2, error_rate=1.0, priority=Priority.BATCH)
    run.step()
    # Seven blocks are held; the same prompt needs two of its own, not eight.
    run.submit("same", prompt, 2, error_rate=1.0)
    assert [s.request_id for s in run.step().scheduled] == ["same"]
    assert run.scheduler.num_preemptions == 0
    run.run()


def test_first_come_first_served_within_a_class() -> None:
    run = SchedulerRun(max_running=1)
    for i in range(5):
        run.submit(f"r{i}", make_prompt(i, 6), 4)
        run.now += 0.001
    run.run()
    assert run.order == [f"r{i}" for i in range(5)]


def test_a_shared_prefix_is_computed_once() -> None:
    run = SchedulerRun(num_blocks=64)
    prompt = make_prompt(1, 42)
    run.submit("first", prompt, 5)
    run.run()
    run.submit("same", prompt, 5)
    run.submit("longer", (*prompt, 7, 8, 9), 5)
    run.submit("shorter", prompt[:17], 5)
    run.submit("other", make_prompt(2, 42), 5)
    run.submit("tenant", prompt, 5, cache_salt=b"tenant")
    run.run()
    cached = {name: event.stats.num_cached_tokens for name, event in run.last_events.items()}
    assert cached == {
        "first": 0,
        "same": 40,
        "longer": 40,
        "shorter": 16,
        "other": 0,
        "tenant": 0,
    }


def test_output_can_be_a_prefix_of_the_next_prompt() -> None:
    run = SchedulerRun()
    prompt = make_prompt(1, 10)
    run.submit("first", prompt, 12)
    run.run()
    run.submit("next", (*prompt, *run.outputs["first"], 3, 4), 5)
    run.run()
    assert run.last_events["next"].stats.num_cached_tokens == 20  # 21 of 22 tokens were computed


def test_a_request_past_its_deadline_fails_with_its_progress() -> None:
    run = SchedulerRun()
    run.submit("late", make_prompt(1, 6), 20, error_rate=1.0, deadline=run.now + 1.0)
    run.submit("patient", make_prompt(2, 6), 20, error_rate=1.0)
    run.step()
    run.step()
    run.now += 2.0
    run.step()
    event = run.last_events["late"]
    assert isinstance(event, Failed)
    assert isinstance(event.error, DeadlineExceededError)
    assert "2.0 s passed and 2 tokens" in str(event.error)
    run.run()
    assert isinstance(run.last_events["patient"], Finished)


def test_everybody_fails_when_the_engine_stops() -> None:
    run = SchedulerRun(max_running=2)
    for i in range(5):
        run.submit(f"r{i}", make_prompt(i, 6), 8, error_rate=1.0)
    run.step()
    run.record(run.scheduler.fail_all(EngineStoppedError("stopping")))
    run.check_ended()
    assert all(isinstance(event, Failed) for event in run.last_events.values())


def test_more_running_requests_than_rows_are_not_admitted() -> None:
    run = SchedulerRun(max_running=8, max_tokens_per_step=3)
    for i in range(6):
        run.submit(f"r{i}", make_prompt(i, 6), 4)
    assert len(run.step().scheduled) == 3
    run.run()


def test_a_stop_token_ends_the_answer_and_is_its_last_token() -> None:
    run = SchedulerRun(max_tokens_per_step=64)
    prompt = make_prompt(1, 6)
    target = make_target(prompt, 30)
    stop = target[12]
    expected = target[: target.index(stop) + 1]
    sampling = SamplingParams(max_tokens=30, stop_token_ids=frozenset({stop}))
    proposer = NoisyProposer(target, error_rate=0.0)
    run.submit("r", prompt, 30, sampling=sampling, proposer=proposer)
    run.targets["r"] = expected
    run.run()
    assert run.last_events["r"].reason == "stop"
    assert run.outputs["r"] == expected


def test_the_limit_ends_the_answer() -> None:
    run = SchedulerRun()
    run.submit("r", make_prompt(1, 6), 7)
    run.run()
    assert run.last_events["r"].reason == "length"


def test_drafts_do_not_keep_others_from_starting() -> None:
    run = SchedulerRun(num_blocks=20, max_tokens_per_step=512)
    run.submit("long", make_prompt(1, 8), 70, error_rate=1.0)
    assert len(run.step().scheduled[0].draft_token_ids) > 60
    run.submit("short", make_prompt(2, 8), 4, error_rate=1.0)
    assert len(run.step().scheduled) == 2
    run.run()
    assert run.scheduler.num_preemptions == 0


def test_a_request_holds_the_blocks_of_its_known_tokens_only() -> None:
    run = SchedulerRun(num_blocks=40, max_tokens_per_step=512)
    run.submit("r", make_prompt(1, 8), 100, error_rate=1.0)
    for num_written in range(1, 30):
        assert len(run.step().scheduled[0].draft_token_ids) > 30
        num_held = run.pool.num_blocks - run.pool.num_free_blocks
        assert num_held == -(-(8 + num_written) // BLOCK_SIZE)
    run.run()
