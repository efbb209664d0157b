"""What short edits wait for while a long prompt is read, with the embedded model.

`python tests/oracle.py engine.head_of_line tests/cases/everyday_edits.jsonl.gz` keeps four short
edits under way, one after the other each, and in every second round gives the engine a prompt of
6,000 tokens beside them. It prints the seconds of short edits in rounds with the long prompt and
without, and how long the long prompts took; nobody may wait for ever.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import deque
from pathlib import Path

from engine_runs import RunningEngine

from apply_service.config import Settings
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.models.found_model import find_model
from apply_service.models.loading import load_served_model
from batching.engine import Engine
from batching.events import Finished
from batching.request import EngineRequest, SamplingParams
from benchmarks.concurrency.tasks import make_tasks

AT_ONCE = 4
LONG_TOKENS = 6_000
SHORT_PER_ROUND = 24


def long_request(name: str, seed: int) -> EngineRequest:
    generator = random.Random(seed)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(1000, 40_000) for _ in range(LONG_TOKENS)),
        sampling=SamplingParams(max_tokens=1),
        cache_salt=name.encode(),
    )


def run_round(
    running: RunningEngine, short: list[EngineRequest], long: EngineRequest | None
) -> tuple[list[float], float | None]:
    """The seconds of each short edit and of the long prompt."""
    began: dict[str, float] = {}
    took: dict[str, float] = {}
    waiting = deque(short)

    def submit(request: EngineRequest) -> None:
        began[request.request_id] = time.perf_counter()
        running.submit(request)

    if long is not None:
        submit(long)
    while waiting or len(took) < len(began):
        others = len(began) - len(took) - (long is not None and long.request_id not in took)
        while waiting and others < AT_ONCE:
            submit(waiting.popleft())
            others += 1
        event = running.take_event()
        if isinstance(event, Finished):
            took[event.request_id] = time.perf_counter() - began[event.request_id]
    of_long = None if long is None else took.pop(long.request_id)
    return list(took.values()), of_long


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    settings = Settings()
    found = find_model(settings, report=print)
    tasks = make_tasks(
        "edits",
        list(read_cases(options.cases)),
        found.profile,
        max_prompt_tokens=400,
        limit=SHORT_PER_ROUND,
    )
    engine = load_served_model(settings, report=print, found=found).engine
    assert isinstance(engine, Engine)
    running = RunningEngine(engine)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    longs: list[float] = []
    for number in range(2 * options.rounds):
        has_long = bool(number % 2)
        short = [
            task.request(f"{number}-{at}", max_tokens=200, seed=1, max_draft_tokens=64)
            for at, task in enumerate(tasks)
        ]
        long = long_request(f"long-{number}", number) if has_long else None
        found_s, long_s = run_round(running, short, long)
        seconds[has_long] += found_s
        longs += [] if long_s is None else [long_s]
    engine.stop()
    for has_long, values in seconds.items():
        values.sort()
        p95 = values[int(0.95 * (len(values) - 1))]
        print(
            f"{'beside a long prompt' if has_long else 'alone'}: {len(values)} edits, median"
            f" {statistics.median(values):.3f} s, p95 {p95:.3f} s, most {values[-1]:.3f} s"
        )
    print(f"long prompts: {', '.join(f'{value:.1f}' for value in longs)} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
