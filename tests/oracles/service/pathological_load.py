"""Edits that are dear to plan against a live server, and normal edits beside them. Run by hand.

`python tests/oracle.py service.pathological_load` starts a server with a tiny random
model and sends it, one after the other, three named edits and every shape of `pathological_shapes`
at its full size with a deadline of five seconds. Then eight clients send the dearest of them over
and over, while one client sends normal edits from the case files; blocks of these alone and beside
the others take turns, so that both see the same machine. It exits with 1 if an edit ends later than
a second after its deadline, if an answer is missing or an error of the server, or if the p95 of the
normal edits beside the others is over twice that of those alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
from case_files import read_records
from oracles.service.load_run import SETTINGS
from pathological_shapes import SHAPES, Shape
from serve_process import serve_process, wait_until_ready
from tiny_model import write_tiny_model

DEADLINE_S = 5.0
GRACE_S = 1.0
NUM_HOSTILE = 8
MAX_RATIO = 2.0


def named_shapes() -> dict[str, Shape]:
    """The inputs by which the fault was found."""
    letters = "x" * 20_000
    values = json.dumps({f"key_{number}": number * 7919 for number in range(4_000)})
    changed = values
    for number in (11, 2_000, 3_999):
        changed = changed.replace(f'"key_{number}": {number * 7919}', f'"key_{number}": 1')
    line = json.dumps([f"value {number}" for number in range(60_000)])
    return {
        "20,000 equal letters and one more": Shape(letters, letters + "y"),
        f"{len(values)} bytes of JSON in a line": Shape(values, changed, "values.json"),
        f"{len(line)} bytes of JSON in a line": Shape(
            line, line.replace("value 777", "x"), "a.json"
        ),
    }


def hostile_body(shape: Shape, use_model: str) -> bytes:
    body = {"original": shape.original, "update": shape.update, "path": shape.path}
    body |= {"deadline_s": DEADLINE_S, "use_model": use_model}
    return json.dumps(body, ensure_ascii=False).encode()


def normal_bodies() -> Iterator[bytes]:
    """Edits that agents wrote, over and over; a different instruction makes each a new one."""
    cases = read_records("later_agent_edits")
    for number, case in enumerate(cycle(cases[::7])):
        body = {name: case[name] for name in ("original", "path")}
        # Plans are kept, so an edit that comes again has to differ in what is planned.
        body |= {"update": f"{case['update']}\n" + "\n" * (number // 64 % 8), "use_model": "never"}
        yield json.dumps(body).encode()


class Client:
    """Sends bodies to a server and notes what became of them."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=120.0)
        self.endings: Counter[str] = Counter()

    async def send(self, body: bytes) -> tuple[float, str]:
        """Seconds, and the status with the code of a problem."""
        started_at = time.perf_counter()
        response = await self._client.post("/v1/apply", content=body)
        seconds = time.perf_counter() - started_at
        answer: dict[str, Any] = response.json()
        ending = f"{response.status_code} {answer.get('code', answer.get('status'))}"
        self.endings[ending] += 1
        return seconds, ending

    async def send_for(self, seconds: float, bodies: Iterator[bytes], taken: list[float]) -> None:
        """Send one body after the other for some time."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            taken.append((await self.send(next(bodies)))[0])


async def run_shapes(client: Client, shapes: dict[str, Shape], use_model: str) -> dict[str, float]:
    """How long each shape takes, printed as it ends."""
    seconds: dict[str, float] = {}
    for name, shape in shapes.items():
        seconds[name], ending = await client.send(hostile_body(shape, use_model))
        print(f"{name:40} {seconds[name]:6.2f} s  {ending}", flush=True)
    return seconds


async def run_beside(
    client: Client, hostile: list[bytes], *, num_rounds: int, block_s: float
) -> tuple[list[float], list[float], list[float]]:
    """Seconds of normal edits alone, of those beside hostile ones, and of the hostile ones."""
    alone: list[float] = []
    beside: list[float] = []
    dear: list[float] = []
    normal = normal_bodies()
    await client.send_for(block_s, normal, [])
    for _ in range(num_rounds):
        await client.send_for(block_s, normal, alone)
        attackers = [
            asyncio.create_task(client.send_for(1e9, cycle([body]), dear)) for body in hostile
        ]
        await client.send_for(block_s, normal, beside)
        for attacker in attackers:
            attacker.cancel()
            with suppress(asyncio.CancelledError):
                await attacker
    return alone, beside, dear


def percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


async def run(
    url: str, *, shapes: dict[str, Shape], use_model: str, num_rounds: int, block_s: float
) -> bool:
    """Do all of it; whether everything is as it should be."""
    client = Client(url)
    seconds = await run_shapes(client, shapes, use_model)
    worst = max(seconds, key=lambda name: seconds[name])
    print(f"shapes         {len(seconds)}, the slowest {seconds[worst]:.2f} s ({worst})")
    print(f"endings        {dict(client.endings)}")
    dearest = sorted(seconds, key=lambda name: -seconds[name])[:NUM_HOSTILE]
    print(f"hostile        {', '.join(dearest)}")
    hostile = [hostile_body(shapes[name], use_model) for name in dearest]
    client.endings.clear()
    alone, beside, dear = await run_beside(client, hostile, num_rounds=num_rounds, block_s=block_s)
    for name, taken in (("alone", alone), ("beside", beside), ("hostile", dear)):
        print(
            f"{name:14} {len(taken)} edits, p50 {statistics.median(taken):.3f} s,"
            f" p95 {percentile(taken, 0.95):.3f} s, most {max(taken):.2f} s"
        )
    ratio = percentile(beside, 0.95) / percentile(alone, 0.95)
    print(f"p95 ratio      {ratio:.2f}")
    print(f"endings        {dict(client.endings)}")
    is_in_time = max(*seconds.values(), *dear) <= DEADLINE_S + GRACE_S
    has_failed = any(ending.startswith("500") for ending in client.endings)
    return is_in_time and not has_failed and ratio <= MAX_RATIO


def main() -> int:
    """Run it against a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--use-model", default="auto", help="auto as clients do, or never")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--block-s", type=float, default=8.0)
    parser.add_argument("--workers", default="8", help="the setting text_workers")
    parser.add_argument("--only", nargs="*", help="names of shapes, instead of all")
    chosen = parser.parse_args()
    shapes = named_shapes() | {name: build(1.0) for name, build in SHAPES.items()}
    if chosen.only:
        shapes = {name: shapes[name] for name in chosen.only}
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_model(Path(folder), seed=0)
        flags = ["--model", folder, "--profile", "embedded", "--port", "0", *SETTINGS]
        with serve_process(*flags, "--text-workers", chosen.workers) as (_, url):
            wait_until_ready(url)
            is_good = asyncio.run(
                run(
                    url,
                    shapes=shapes,
                    use_model=chosen.use_model,
                    num_rounds=chosen.rounds,
                    block_s=chosen.block_s,
                )
            )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
