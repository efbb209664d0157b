"""What the grammar costs: `python tests/oracle.py edits.grammar_overhead CASES --limit 20`.

Runs real edits under the constraint with the embedded model, one at a time, and sums the time spent
in building the constraint, in its methods and in reading the answer back. Shares are of wall-clock
time; microseconds are of the calling thread's CPU time, so that other work does not count. A forced
step is one whose plan asks for no decision; what the engine asked of the grammar since the step
before counts to a step.
"""

from __future__ import annotations

import argparse
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch

from apply_service.apply.merge_constraint import MergeConstraint, try_constrain
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.contenders.pipeline import load_contender
from batching.scheduler import Scheduler
from batching.step_plan import StepPlan

MAX_SHARE = 0.02
MAX_STEP_S = 200e-6


class GrammarClock:
    """Time and calls by what was called; a call within another counts to the outer one.

    `cpu_s` is by name; `wall_s` is of all. `engine_s` is the CPU time on the engine's thread.
    """

    def __init__(self) -> None:
        self.cpu_s: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.wall_s = 0.0
        self.engine_s = 0.0
        self.is_running = False

    @property
    def total_cpu_s(self) -> float:
        """CPU time of all that was timed."""
        return math.fsum(self.cpu_s.values())

    def time(self, name: str, call: Callable[[], Any]) -> Any:
        """Call, and count it."""
        if self.is_running:
            return call()
        self.is_running = True
        started, cpu_started = perf_counter(), thread_time()
        try:
            return call()
        finally:
            seconds = thread_time() - cpu_started
            self.wall_s += perf_counter() - started
            self.cpu_s[name] += seconds
            self.calls[name] += 1
            if threading.current_thread().name == "engine":
                self.engine_s += seconds
            self.is_running = False


class TimedConstraint:
    """A constraint as its own, with every property and method timed."""

    def __init__(self, constraint: Any, clock: GrammarClock) -> None:
        self._constraint = constraint
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        if not callable(getattr(type(self._constraint), name, None)):
            return self._clock.time(name, lambda: getattr(self._constraint, name))
        method = getattr(self._constraint, name)
        return lambda *args, **kwargs: self._clock.time(name, lambda: method(*args, **kwargs))


class StepLog:
    """The grammar's seconds at each step of the engine, and whether it asked for a decision."""

    def __init__(self, clock: GrammarClock) -> None:
        self._clock = clock
        self._seconds_before = 0.0
        self.forced_s: list[float] = []
        self.decided_s: list[float] = []

    def note(self, plan: StepPlan) -> None:
        """A step was planned: all that the grammar did since the last one was for it."""
        if not plan.scheduled:
            return
        rows = [row for one in plan.scheduled for row in one.constrained_rows or ()]
        seconds = self._clock.engine_s - self._seconds_before
        self._seconds_before += seconds
        kind = self.decided_s if any(row.is_decision for row in rows) else self.forced_s
        kind.append(seconds)


@contextmanager
def timed_grammar(clock: GrammarClock, steps: StepLog) -> Iterator[None]:
    """Every constraint made within is timed, and every step is noted."""
    make, schedule = MergeConstraint.grammar, Scheduler.schedule

    def timed_make(self: MergeConstraint) -> Any:
        is_inner = clock.is_running
        grammar = clock.time("grammar()", lambda: make(self))
        return grammar if is_inner else TimedConstraint(grammar, clock)

    def timed_constrain(*args: Any, **kwargs: Any) -> MergeConstraint | None:
        found: MergeConstraint | None = clock.time(
            "try_constrain()", lambda: try_constrain(*args, **kwargs)
        )
        return found

    def noted_schedule(self: Scheduler, now: float) -> StepPlan:
        plan = schedule(self, now)
        steps.note(plan)
        return plan

    with (
        patch.object(MergeConstraint, "grammar", timed_make),
        patch("apply_service.apply.region_prompt.try_constrain", timed_constrain),
        patch.object(Scheduler, "schedule", noted_schedule),
    ):
        yield


def measure(cases: Sequence[Case]) -> Iterator[str]:
    """Run all cases; the figures as lines of text."""
    clock = GrammarClock()
    steps = StepLog(clock)
    contender = load_contender(model=None, threads=None, has_fallback=True, constraint="merge")
    shares: list[float] = []
    request_s: list[float] = []
    end_to_end_s = 0.0
    try:
        with timed_grammar(clock, steps):
            for case in cases:
                wall_s, cpu_s = clock.wall_s, clock.total_cpu_s
                seconds = contender.answer(case).seconds
                if clock.wall_s > wall_s and seconds:
                    request_s.append(clock.total_cpu_s - cpu_s)
                    shares.append((clock.wall_s - wall_s) / seconds)
                    end_to_end_s += seconds
    finally:
        contender.close()
    yield f"{len(request_s)} of {len(cases)} edits had a constraint, {end_to_end_s:.1f} s in all"
    share = clock.wall_s / end_to_end_s
    yield (
        f"grammar: {share:.3%} of end-to-end time (wanted at most {MAX_SHARE:.0%}); by edit"
        f" p50 {quantile(shares, 0.5):.3%}, p99 {quantile(shares, 0.99):.3%}"
    )
    yield f"{'us of CPU time':<34}{'count':>8}{'mean':>10}{'p50':>10}{'p99':>10}"
    yield row("request, building included", request_s)
    yield row("request and step, forced path", steps.forced_s)
    yield row("request and step with a decision", steps.decided_s)
    late = sum(seconds > MAX_STEP_S for seconds in steps.forced_s)
    yield f"forced steps over {1e6 * MAX_STEP_S:.0f} us: {late} of {len(steps.forced_s)}"
    yield f"{'by call, CPU time':<24}{'calls':>8}{'us each':>10}{'ms in all':>12}"
    for name, seconds in sorted(clock.cpu_s.items(), key=lambda item: -item[1]):
        count = clock.calls[name]
        yield f"{name:<24}{count:>8}{1e6 * seconds / count:>10.1f}{1e3 * seconds:>12.2f}"


def row(label: str, seconds: Sequence[float]) -> str:
    """One line of microseconds."""
    if not seconds:
        return f"{label:<34}{0:>8}"
    mean = math.fsum(seconds) / len(seconds)
    figures = (mean, quantile(seconds, 0.5), quantile(seconds, 0.99))
    return f"{label:<34}{len(seconds):>8}" + "".join(f"{1e6 * one:>10.0f}" for one in figures)


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * share) - 1]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th case only")
    args = parser.parse_args()
    cases = list(islice(read_cases(args.cases), 0, args.limit * args.every, args.every))
    for line in measure(cases):
        print(line, flush=True)


if __name__ == "__main__":
    main()
