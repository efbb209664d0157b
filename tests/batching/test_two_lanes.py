"""The scheduler with two steps under way: nobody is in both, and each writes what it must."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from scheduler_run import BLOCK_SIZE, SchedulerMachine, SchedulerRun, make_prompt

from batching.events import Cancelled, Finished
from batching.step_plan import StepPlan, StepResult


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
