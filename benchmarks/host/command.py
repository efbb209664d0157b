"""`python -m benchmarks host`: what a step costs the host, part by part, without a device.

Real edits are decoded in batches over a runner without a device (`device_model`), each with drafts
of up to 64 tokens; after the first round their prompts are cached. Of every step the CPU time of
the engine's thread is taken apart: `plan`, `draft`, `pack` (the batch into the buffers of a graph),
`read` (the outcome into tokens), `commit`, `events`, and the `rest` of its loop. Steps that read
prompts are shown apart. CPU time, so that other work does not count.
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

from batching.engine import Engine
from batching.request import RequestState
from batching.scheduler import Scheduler
from benchmarks.device_model.command import null_engine, null_runner
from benchmarks.device_model.edits import Edit, read_edits
from benchmarks.device_model.null_runner import NullRunner, NullStep

_PARTS = ("plan", "draft", "pack", "read", "commit", "events", "rest")
# Steps count as full with this share of the requests.
_FULL = 0.9


class StepClock:
    """CPU seconds of each part of each step, in their order; `draft` is in `plan`."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._current: dict[str, float] = defaultdict(float)
        self._ended = thread_time()

    def timed(self, name: str, call: Any) -> Any:
        """`call`, which then counts to the part `name`."""

        def run(*args: Any, **options: Any) -> Any:
            started = thread_time()
            try:
                found = call(*args, **options)
                # Events are made as they are asked for.
                return list(found) if isinstance(found, Iterator) else found
            finally:
                self._current[name] += thread_time() - started

        return run

    def add(self, name: str, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        self._current[name] += seconds

    def end_step(self, **facts: float) -> None:
        """The step is over."""
        now = thread_time()
        parts = dict(self._current)
        parts["plan"] -= parts.get("draft", 0.0)
        parts["pack"] -= parts.pop("simulated", 0.0)
        named = sum(parts.get(name, 0.0) for name in _PARTS[:-1])
        simulated = self._current.get("simulated", 0.0)
        parts["rest"] = max(now - self._ended - named - simulated, 0.0)
        self.steps.append(parts | facts)
        self._current.clear()
        self._ended = now


@contextmanager
def clocked() -> Iterator[StepClock]:
    """Time the steps of every engine in this process."""
    clock = StepClock()
    step, schedule, outcome = Engine.step, Scheduler.schedule, NullRunner._outcome
    known: list[tuple[int, int]] = []

    def remember(scheduler: Scheduler, now: float) -> Any:
        plan = schedule(scheduler, now)
        known.append((plan.num_known_tokens, len(plan.scheduled)))
        return plan

    def simulate(runner: NullRunner, plan: Any) -> Any:
        started = thread_time()
        found = outcome(runner, plan)
        clock.add("simulated", thread_time() - started)
        return found

    def whole(engine: Engine) -> None:
        step(engine)
        num_known, num_requests = known[-1]
        if num_requests:
            clock.end_step(known=num_known, requests=num_requests)

    with ExitStack() as stack:
        for owner, name, replacement in (
            (Engine, "step", whole),
            (Engine, "_publish_one", clock.timed("events", Engine._publish_one)),
            (Scheduler, "schedule", clock.timed("plan", remember)),
            (Scheduler, "commit", clock.timed("commit", Scheduler.commit)),
            (RequestState, "propose", clock.timed("draft", RequestState.propose)),
            (NullRunner, "launch", clock.timed("pack", NullRunner.launch)),
            (NullRunner, "_outcome", simulate),
            (NullStep, "wait", clock.timed("read", NullStep.wait)),
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
    print(f"| requests | rows | {' | '.join(_PARTS)} | together, ms | with prompts, ms |")
    print(f"|{'---|' * (len(_PARTS) + 4)}")
    for num_requests in chosen.requests:
        print(_row(num_requests, measure(edits, num_requests, rounds=chosen.rounds)), flush=True)
    return 0


def measure(edits: Sequence[Edit], num_requests: int, *, rounds: int) -> list[dict[str, float]]:
    """The parts of all steps of some batches of so many requests."""
    max_rows = num_requests * 65
    with clocked() as clock:
        runner = null_runner(edits, step_s=lambda _plan: 0.0, max_rows=max(max_rows, 512))
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
    cells = [f"{value:.3f}" for value in medians.values()]
    return (
        f"| {num_requests} | {num_requests * 65} | {' | '.join(cells)}"
        f" | {sum(medians.values()):.2f} | {with_prompts:.2f} |"
    )


def _median_ms(values: Sequence[float]) -> float:
    return 1e3 * statistics.median(values) if values else 0.0
