"""A scheduler without a model, all of whose plans and events are checked."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from oracles.engine.erratic_costs import ErraticCosts
from oracles.engine.target_runner import NoisyProposer, TargetRunner, make_target

from batching.block_pool import BlockPool
from batching.cache.prefix_cache import PrefixCache
from batching.config import SchedulerConfig
from batching.errors import StepFailedError
from batching.events import Cancelled, Event, Finished, RequestStats, Tokens
from batching.request import EngineRequest, Priority, SamplingParams
from batching.scheduler import Scheduler
from batching.step_costs import StepCosts
from batching.step_plan import ScheduledRequest, StepPlan

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
