"""What a process of its own costs an engine: the same requests here and there, in turns.

`python tests/oracle.py engine.seam` runs a tiny random model, whose steps take a few milliseconds,
in this process and in one of its own. It prints, for several requests at once, the median and the
mean time of a step, by which the tokens of a request follow each other, and the time from a request
to its only token; medians over rounds, with the 95 % interval of the difference. It exits with 1 if
the process costs either more than 0.4 ms. Requests reach a process one by one: a number of rows
that was not there before costs its first step some 3 ms, which only the mean shows. Two loads of
one model differ by 2 % in the time of a step, so both engines are loaded several times.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tiny_model import write_tiny_model

from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from apply_service.models.remote_engine import launch_model
from batching.events import Event, Finished, Tokens
from batching.request import EngineRequest, SamplingParams

MAX_SEAM_MS = 0.4
NUM_TOKENS = 100
AT_ONCE = (1, 8, 32)
NUM_RESAMPLES = 2000


@dataclass
class Clock:
    """An engine whose events are timed where they arrive."""

    engine: Any
    _times: dict[str, list[float]] = field(default_factory=dict)
    _num_ended: int = 0
    _change: threading.Condition = field(default_factory=threading.Condition)

    def start(self) -> None:
        self.engine.start(self._take)

    def steps_ms(self, num_requests: int) -> tuple[float, float]:
        """Milliseconds from one token of a request to its next, beside others: median, mean."""
        times = self._run(num_requests, NUM_TOKENS)
        steps = [1e3 * (new - old) for one in times for old, new in pairwise(one)]
        return statistics.median(steps), statistics.mean(steps)

    def first_ms(self) -> float:
        """Milliseconds from a request to its only token, with nothing beside."""
        began = time.perf_counter()
        ((first, *_),) = self._run(1, 1)
        return 1e3 * (first - began)

    def _run(self, num_requests: int, num_tokens: int) -> list[list[float]]:
        self._times, self._num_ended = {}, 0
        for number in range(num_requests):
            self.engine.submit(make_request(f"r{number}", num_tokens))
        with self._change:
            self._change.wait_for(lambda: self._num_ended == num_requests)
        return list(self._times.values())

    def _take(self, event: Event) -> None:
        now = time.perf_counter()
        if isinstance(event, Tokens):
            times = self._times.setdefault(event.request_id, [])
            times += [now] * len(event.token_ids)
            return
        assert isinstance(event, Finished), event
        with self._change:
            self._num_ended += 1
            self._change.notify()


@dataclass
class Found:
    """Milliseconds here and there: median and mean step by requests at once, and first tokens."""

    steps: dict[int, list[tuple[tuple[float, float], tuple[float, float]]]] = field(
        default_factory=lambda: {num_requests: [] for num_requests in AT_ONCE}
    )
    firsts: list[tuple[float, float]] = field(default_factory=list)


def make_request(name: str, num_tokens: int) -> EngineRequest:
    generator = random.Random(name)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(20)),
        sampling=SamplingParams(max_tokens=num_tokens),
        max_draft_tokens=0,
    )


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by resampling."""
    generator = random.Random(0)
    medians = sorted(
        statistics.median(generator.choices(differences, k=len(differences)))
        for _ in range(NUM_RESAMPLES)
    )
    return medians[NUM_RESAMPLES // 40], medians[-NUM_RESAMPLES // 40]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", type=int, default=4, help="how often both are loaded")
    parser.add_argument("--rounds", type=int, default=10, help="rounds with each load")
    options = parser.parse_args()
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_model(Path(folder), seed=0)
        settings = Settings(
            model=folder, profile="embedded", threads=1, kv_memory=64 << 20, device="cpu"
        )
        for _ in range(options.loads):
            here = Clock(load_served_model(settings, report=print).engine)
            there = Clock(launch_model(settings, report=print).engine)
            try:
                measure(here, there, options.rounds, found)
            finally:
                for clock in (here, there):
                    clock.engine.stop()
    return 0 if report(found) else 1


def measure(here: Clock, there: Clock, num_rounds: int, found: Found) -> None:
    """Run the rounds of one load, in turns."""
    for clock in (here, there):
        clock.start()
        clock.steps_ms(AT_ONCE[-1])  # the first steps pay for what is set up once
    for num_requests in AT_ONCE:
        for number in range(num_rounds):
            order = (here, there) if number % 2 else (there, here)
            steps = {id(clock): clock.steps_ms(num_requests) for clock in order}
            found.steps[num_requests].append((steps[id(here)], steps[id(there)]))
    found.firsts += [(here.first_ms(), there.first_ms()) for _ in range(4 * num_rounds)]


def report(found: Found) -> bool:
    """Print all rows; whether median and mean of a step are within the limit everywhere."""
    print("| | here ms | there ms | seam ms (95 %) |\n|---|---|---|---|")
    is_good = True
    for num_requests, pairs in found.steps.items():
        name = f"a step, {num_requests} at once"
        for index, kind in enumerate(("median", "mean")):
            seam = show(f"{name}, {kind}", [(here[index], there[index]) for here, there in pairs])
            is_good = is_good and seam <= MAX_SEAM_MS
    show("a request to its token", found.firsts)
    return is_good


def show(name: str, pairs: Sequence[tuple[float, float]]) -> float:
    """Print a row; the median of the differences."""
    differences = [there - here for here, there in pairs]
    middle = statistics.median(differences)
    low, high = interval(differences)
    here_ms, there_ms = (statistics.median(part) for part in zip(*pairs, strict=True))
    print(f"| {name} | {here_ms:.3f} | {there_ms:.3f} | {middle:.3f} ({low:.3f} to {high:.3f}) |")
    return middle


if __name__ == "__main__":
    sys.exit(main())
