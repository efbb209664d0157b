"""What a process of its own costs an engine: the same requests here and there, in turns.

`python tests/oracle.py engine.seam` runs a tiny random model, whose steps take a few milliseconds,
in this process and in one of its own. It prints, for several requests at once, the time of a step
by which the tokens of a request follow each other, and the time from a request to its only token;
medians over rounds, with the 95 % interval of the difference. It exits with 1 if the process costs
more than 0.4 ms a step.
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

    def step_ms(self, num_requests: int) -> float:
        """Milliseconds from one token of a request to its next, beside others."""
        times = self._run(num_requests, NUM_TOKENS)
        spans = [(one[-1] - one[0]) / (len(one) - 1) for one in times if len(one) > 1]
        return 1e3 * statistics.mean(spans)

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
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_model(Path(folder), seed=0)
        settings = Settings(
            model=folder, profile="embedded", threads=1, kv_memory=64 << 20, device="cpu"
        )
        here = Clock(load_served_model(settings, report=print).engine)
        there = Clock(launch_model(settings, report=print).engine)
        try:
            is_good = measure(here, there, options.rounds)
        finally:
            for clock in (here, there):
                clock.engine.stop()
    return 0 if is_good else 1


def measure(here: Clock, there: Clock, num_rounds: int) -> bool:
    """Print all rows; whether each step is within the limit."""
    for clock in (here, there):
        clock.start()
        clock.step_ms(AT_ONCE[-1])  # the first steps pay for what is set up once
    print("| | here ms | there ms | seam ms (95 %) |\n|---|---|---|---|")
    is_good = True
    for num_requests in AT_ONCE:
        pairs = []
        for number in range(num_rounds):
            order = (here, there) if number % 2 else (there, here)
            pair = {id(clock): clock.step_ms(num_requests) for clock in order}
            pairs.append((pair[id(here)], pair[id(there)]))
        seam = show(f"a step, {num_requests} at once", pairs)
        is_good = is_good and seam <= MAX_SEAM_MS
    firsts = [(here.first_ms(), there.first_ms()) for _ in range(4 * num_rounds)]
    show("a request to its token", firsts)
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
