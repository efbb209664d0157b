"""How much slower an interactive edit is beside a batch that never ends.

    python -m tests.oracles.service.batch_interference --model MODEL --pairs 20

Each pair is one interactive edit without and one with a batch, in turns, so that whatever else the
machine does meets both alike. The figure is the quotient of the medians with its 95 % interval by a
bootstrap over the pairs. The model is really run: by default the embedded one.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
from apply_client import ApplyOptions, AsyncApplyClient, Edit

NUM_RESAMPLES = 10_000
_START_LIMIT_S = 120.0


def source(number: int) -> str:
    """A file that no other edit shares a prompt with."""
    functions = (
        f"def part_{number}_{place}(value):\n    total = value + {number * place}\n"
        f"    print(total)\n    return total\n\n\n"
        for place in range(6)
    )
    return "".join(functions)


def edit(number: int, *, is_batch: bool) -> Edit[str]:
    """One function is written anew; the model writes freely, so that there is work for it."""
    update = (
        f"# ... existing code ...\ndef part_{number}_3(value, factor):\n"
        f"    total = factor * value + {number}\n    print(total, factor)\n    return total\n"
        "# ... existing code ...\n"
    )
    options = ApplyOptions(
        use_model="always",
        constraint="none",
        checks="off",
        priority="batch" if is_batch else "interactive",
    )
    return Edit(source(number), update, path=f"part_{number}.py", options=options)


@asynccontextmanager
async def endless_batch(client: AsyncApplyClient, *, max_concurrency: int) -> AsyncIterator[None]:
    """So many batch edits are under way all the time inside; they are withdrawn at its end."""
    first = random.randrange(10**6)
    edits = (edit(number, is_batch=True) for number in itertools.count(10_000 + first))

    async def run() -> None:
        async for outcome in client.apply_many(edits, max_concurrency=max_concurrency):
            if outcome.error is not None:
                raise outcome.error

    task = asyncio.create_task(run())
    try:
        await asyncio.sleep(1.0)
        yield
        assert not task.done(), "the batch has failed"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def seconds_of(client: AsyncApplyClient, number: int) -> float:
    """How long one interactive edit takes."""
    started = time.perf_counter()
    await client.apply_edit(edit(number, is_batch=False))
    return time.perf_counter() - started


def slowdown(alone: Sequence[float], beside: Sequence[float]) -> tuple[float, float, float]:
    """The quotient of the medians, and the ends of its 95 % interval."""
    generator = random.Random(0)
    quotients = []
    for _ in range(NUM_RESAMPLES):
        places = [generator.randrange(len(alone)) for _ in alone]
        quotients.append(
            statistics.median(beside[place] for place in places)
            / statistics.median(alone[place] for place in places)
        )
    quotients.sort()
    low, high = quotients[NUM_RESAMPLES // 40], quotients[-NUM_RESAMPLES // 40]
    return statistics.median(beside) / statistics.median(alone), low, high


async def measure(url: str, *, num_pairs: int, max_concurrency: int) -> dict[str, object]:
    """Run the pairs against a server that is ready."""
    alone, beside = [], []
    async with AsyncApplyClient(url) as client:
        await seconds_of(client, 0)
        for pair in range(1, num_pairs + 1):
            alone.append(await seconds_of(client, 2 * pair))
            async with endless_batch(client, max_concurrency=max_concurrency):
                beside.append(await seconds_of(client, 2 * pair + 1))
            await asyncio.sleep(0.5)  # what was withdrawn has gone
    quotient, low, high = slowdown(alone, beside)
    return {
        "pairs": num_pairs,
        "alone_p50_s": round(statistics.median(alone), 4),
        "beside_p50_s": round(statistics.median(beside), 4),
        "slowdown": round(quotient, 4),
        "slowdown_95": [round(low, 4), round(high, 4)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=8)
    args = parser.parse_args()
    server = subprocess.Popen(
        [*(sys.executable, "-m", "apply_service", "serve"), "--port", "8759", "--model", args.model]
    )
    url = "http://127.0.0.1:8759"
    try:
        deadline = time.monotonic() + _START_LIMIT_S
        while True:
            assert time.monotonic() < deadline, "the server does not become ready"
            try:
                if httpx.get(f"{url}/health/ready?model=ready", trust_env=False).status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        figures = asyncio.run(measure(url, num_pairs=args.pairs, max_concurrency=args.concurrency))
        print(json.dumps(figures, indent=2))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
