"""`python -m benchmarks host`: what a step costs the host beside its pass.

Batches of 1 and of 32 real edits are decoded without a constraint, with the drafts and the budget
of the service. Of every step that does not read a prompt the CPU time of the engine's thread is
taken apart: planning (drafting apart), drafting, commit with its events, and the rest, which is the
forward pass with verification. Turning the tokens of a step into text happens on another thread and
is timed here behind the batch. CPU time, so that other work does not count.
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

from apply_service.config import Settings
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.models.loading import resolve_dtype
from apply_service.models.store import cache_dir, resolve_model
from apply_service.prompts.profile import load_profile
from batching.config import EngineConfig, SchedulerConfig
from batching.engine import Engine, build_engine
from batching.request import RequestState
from batching.scheduler import Scheduler
from benchmarks.concurrency.batch_engine import BatchEngine, EngineBatchRun
from benchmarks.concurrency.tasks import Task, make_tasks

MAX_SHARE = 0.03
MAX_MS = 1.0


class StepClock:
    """CPU seconds of each part of each step, in their order; `draft` is in `schedule`."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._current: dict[str, float] = defaultdict(float)

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

    def end_step(self, num_known: int) -> None:
        """The step is over; `num_known` of its tokens were known before."""
        self.steps.append(dict(self._current) | {"known": num_known})
        self._current.clear()


@contextmanager
def clocked() -> Iterator[StepClock]:
    """Time the steps of every engine in this process."""
    clock = StepClock()
    step, schedule = Engine.step, Scheduler.schedule
    known: list[int] = []

    def remember(scheduler: Scheduler, now: float) -> Any:
        plan = schedule(scheduler, now)
        known.append(plan.num_known_tokens if plan.scheduled else 0)
        return plan

    def whole(engine: Engine) -> None:
        clock.timed("step", step)(engine)
        if known[-1]:
            clock.end_step(known[-1])

    with ExitStack() as stack:
        for owner, name, replacement in (
            (Engine, "step", whole),
            (Scheduler, "schedule", clock.timed("schedule", remember)),
            (Scheduler, "commit", clock.timed("commit", Scheduler.commit)),
            (RequestState, "propose", clock.timed("draft", RequestState.propose)),
        ):
            stack.enter_context(patch.object(owner, name, replacement))
        yield clock


def run_batch(
    engine: BatchEngine, tasks: Sequence[Task], *, name: str, max_tokens: int
) -> EngineBatchRun:
    """All tasks at once, drafts as in the service."""
    return engine.run(
        [
            partial(
                task.request, f"{name}-{at}", max_tokens=max_tokens, seed=1, max_draft_tokens=64
            )
            for at, task in enumerate(tasks)
        ]
    )


def detokenising_s(tasks: Sequence[Task], run: EngineBatchRun) -> float:
    """CPU seconds of turning all answers of a batch into text, in pieces of a step."""
    size = max(1, sum(map(len, run.token_ids)) // max(run.num_steps, 1) // len(tasks))
    started = thread_time()
    for task, token_ids in zip(tasks, run.token_ids, strict=True):
        decoder = task.prompt.stream_decoder()
        for start in range(0, len(token_ids), size):
            decoder.push(token_ids[start : start + size])
    return thread_time() - started


def add_host_command(subparsers: Any) -> None:
    """Register `host` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "host", help="what a step costs the host beside its pass", description=__doc__
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=200)


def run_host(chosen: argparse.Namespace) -> int:
    """Run both batch sizes and print what a step costs."""
    location = resolve_model("embedded")
    profile = load_profile(location.profile, location.path)
    cases = list(read_cases(chosen.cases))
    tasks = make_tasks("edits", cases, profile, max_prompt_tokens=400, limit=32)
    config = EngineConfig(
        model_path=location.path,
        dtype=resolve_dtype(Settings(), "cpu"),
        draft_budget="auto",
        step_cost_dir=cache_dir() / "step-costs",
        kv_memory_bytes=1 << 30,
        scheduler=SchedulerConfig(max_running=64),
    )
    with clocked() as clock, BatchEngine(build_engine(config)) as engine:
        for size in (1, 32):
            clock.steps.clear()
            extra_s, num_steps = 0.0, 0
            for number in range(chosen.rounds * 32 // size):
                first = number * size % 32
                run = run_batch(
                    engine,
                    tasks[first : first + size],
                    name=f"{size}-{number}",
                    max_tokens=chosen.max_tokens,
                )
                extra_s += detokenising_s(tasks[first : first + size], run)
                num_steps += run.num_steps
            print_medians(size, clock, detokenise_s=extra_s / num_steps)
    return 0


def print_medians(size: int, clock: StepClock, *, detokenise_s: float) -> None:
    """Print medians over the steps in which every request only decodes."""
    decoding = [one for one in clock.steps if one["known"] <= size]
    parts = {
        "schedule": [one["schedule"] - one.get("draft", 0.0) for one in decoding],
        "draft": [one.get("draft", 0.0) for one in decoding],
        "commit": [one.get("commit", 0.0) for one in decoding],
        "detokenise": [detokenise_s] * len(decoding),
    }
    medians = {name: 1e3 * statistics.median(values) for name, values in parts.items()}
    whole = 1e3 * statistics.median(one["step"] for one in decoding)
    together = sum(medians.values())
    listed = ", ".join(f"{name} {value:.3f}" for name, value in medians.items())
    print(
        f"batch {size}: {len(decoding)} steps of {whole:.1f} ms; {listed} ms;"
        f" together {together:.3f} ms, {together / whole:.2%}"
        f" (limits {MAX_MS} ms, {MAX_SHARE:.0%})",
        flush=True,
    )
