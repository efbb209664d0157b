"""`python -m benchmarks host`: what a step costs the host, part by part, without a device.

Real edits are decoded in batches over a runner without a device (`device_model`) whose steps take
10 ms, each with drafts of up to 64 tokens; after the first round their prompts are cached. Of every
step the CPU time of the engine's thread is taken apart: `plan`, `draft`, `pack` (the batch into the
buffers of a graph), `read` (the outcome into tokens), `commit`, `events`, and the `rest` of its
loop. What is done `beside` the device is no part of the sum. Steps that read prompts are shown
apart. CPU time, so that other work does not count.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any
from unittest.mock import patch

from apply_service.observe.progress import tracked
from batching.engine import Engine
from batching.request import RequestState
from batching.scheduler import Scheduler
from benchmarks.device_model.command import null_engine, null_runner
from benchmarks.device_model.edits import Edit, read_edits
from benchmarks.device_model.null_runner import NullRunner, NullStep

_PARTS = ("plan", "draft", "pack", "read", "commit", "events", "rest")
_BESIDE = "beside"
_UNCOUNTED = "uncounted"
_STEP_S = 0.01
# Steps count as full with this share of the requests.
_FULL = 0.9


class StepClock:
    """CPU seconds of each part of each step; a part within another one is not counted twice."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._current: dict[str, float] = defaultdict(float)
        self._inside: list[str] = []
        self._began: float | None = None

    def timed(self, name: str, call: Any) -> Any:
        """`call`, which then counts to the part `name`, or to what is done beside the device."""

        def run(*args: Any, **options: Any) -> Any:
            self._enter(_BESIDE if self._inside[-1:] == [_BESIDE] else name)
            try:
                found = call(*args, **options)
                # Events are made as they are asked for.
                return list(found) if isinstance(found, Iterator) else found
            finally:
                self._leave()

        return run

    def end_step(self, **facts: float) -> None:
        """The step is over."""
        self._count("rest")
        self.steps.append(dict(self._current) | facts)
        self._current.clear()

    def _enter(self, name: str) -> None:
        self._count(self._inside[-1] if self._inside else "rest")
        self._inside.append(name)

    def _leave(self) -> None:
        self._count(self._inside.pop())

    def _count(self, name: str) -> None:
        now = thread_time()
        if self._began is not None:
            self._current[name] += now - self._began
        self._began = now


@contextmanager
def clocked() -> Iterator[StepClock]:
    """Time the steps of every engine in this process."""
    clock = StepClock()
    step, schedule = Engine.step, Scheduler.schedule
    known: list[tuple[int, int]] = []

    def remember(scheduler: Scheduler, now: float, *, num_lanes: int) -> Any:
        plan = schedule(scheduler, now, num_lanes=num_lanes)
        known.append((plan.num_known_tokens, len(plan.scheduled)))
        return plan

    def whole(engine: Engine) -> None:
        step(engine)
        num_known, num_requests = known[-1]
        if num_requests:
            clock.end_step(known=num_known, requests=num_requests)

    with ExitStack() as stack:
        for owner, name, replacement in (
            (Engine, "step", whole),
            (Engine, "_publish_one", clock.timed("events", Engine._publish_one)),
            (Engine, "_work_beside", clock.timed(_BESIDE, Engine._work_beside)),
            (Scheduler, "schedule", clock.timed("plan", remember)),
            (Scheduler, "commit", clock.timed("commit", Scheduler.commit)),
            (RequestState, "propose", clock.timed("draft", RequestState.propose)),
            (NullRunner, "launch", clock.timed("pack", NullRunner.launch)),
            (NullRunner, "outcome_of", clock.timed(_UNCOUNTED, NullRunner.outcome_of)),
            (NullStep, "wait", clock.timed("read", NullStep.wait)),
            (NullStep, "pause", clock.timed(_UNCOUNTED, NullStep.pause)),
        ):
            stack.enter_context(patch.object(owner, name, replacement))
        yield clock


def add_host_command(subparsers: Any) -> None:
    """Register `host` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "host", help="what a step costs the host, part by part", description=__doc__
    )
    parser.add_argument("cases", type=Path, nargs="+", help="case files, one JSON a line")
    parser.add_argument("--requests", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--edits", type=int, default=64, help="different edits")
    parser.add_argument("--rounds", type=int, default=3)


def run_host(chosen: argparse.Namespace) -> int:
    """Run all batch sizes and print what a step costs."""
    edits = read_edits(chosen.cases, limit=chosen.edits, max_tokens=4_096)
    columns = ("requests", "rows", *_PARTS, "together, ms", "with prompts, ms", _BESIDE)
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for num_requests in tracked(chosen.requests, name=lambda number: f"{number} requests"):
        print(_row(num_requests, measure(edits, num_requests, rounds=chosen.rounds)), flush=True)
    return 0


def measure(edits: Sequence[Edit], num_requests: int, *, rounds: int) -> list[dict[str, float]]:
    """The parts of all steps of some batches of so many requests."""
    max_rows = num_requests * 65
    with clocked() as clock:
        runner = null_runner(
            edits, step_s=lambda _plan: _STEP_S, may_sleep=False, max_rows=max(max_rows, 512)
        )
        with null_engine(
            runner, max_running=num_requests, max_rows=max(max_rows, 512), costs=None
        ) as engine:
            for number in range(rounds):
                engine.run(
                    [
                        partial(
                            edits[at % len(edits)].request,
                            f"{number}-{at}-{at % len(edits)}",
                            max_draft_tokens=64,
                            cache_salt=b"shared",
                        )
                        for at in range(num_requests)
                    ]
                )
        return clock.steps


def _row(num_requests: int, steps: Sequence[dict[str, float]]) -> str:
    """Medians over the steps in which most requests decode, and over those that read prompts."""
    decoding = [
        one
        for one in steps
        if one["known"] <= one["requests"] and one["requests"] >= _FULL * num_requests
    ]
    reading = [one for one in steps if one["known"] > one["requests"]]
    medians = {name: _median_ms([one.get(name, 0.0) for one in decoding]) for name in _PARTS}
    with_prompts = _median_ms([sum(one.get(name, 0.0) for name in _PARTS) for one in reading])
    beside = _median_ms([one.get(_BESIDE, 0.0) for one in decoding])
    cells = [f"{value:.3f}" for value in medians.values()]
    return (
        f"| {num_requests} | {num_requests * 65} | {' | '.join(cells)}"
        f" | {sum(medians.values()):.2f} | {with_prompts:.2f} | {beside:.2f} |"
    )


def _median_ms(values: Sequence[float]) -> float:
    return 1e3 * statistics.median(values) if values else 0.0
