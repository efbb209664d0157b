"""Whether a server that was under load is itself again afterwards. Run by hand.

`python tests/oracle.py service.load_recovery` starts a server with the embedded model,
or with the one that `--model` names, and five times over sends it edits from 64 clients for 45
seconds and then 20 edits one after the other, each with the server's own deadline. Every edit asks
the model. `--busy` keeps so many cores busy with other work all the time. It exits with 1 unless,
in every round, all 20 are answered, no edit is lost, every probe of readiness says that edits are
taken or that they would wait too long, and afterwards the engine is empty and the server ready.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from serve_process import serve_process, wait_until_ready
from traffic import ANSWERED, SMALL_FUNCTIONS, Tally, edit_of, run_clients

NUM_EDITS = 20
PROBE_EVERY_S = 0.5
SETTLE_S = 10.0
SETTINGS = (
    *("--requests-per-minute", "0", "--tokens-per-minute", "0", "--max-concurrent", "0"),
    *("--compat-review", "accept", "--use-model", "always"),
)


def single_edits(url: str, first: int) -> tuple[Counter[str], float]:
    """How so many edits ended that nothing else ran beside, and the median of their seconds."""
    endings: Counter[str] = Counter()
    seconds = []
    for number in range(first, first + NUM_EDITS):
        began = time.monotonic()
        body = edit_of(number, SMALL_FUNCTIONS)
        answer = httpx.post(f"{url}/v1/apply", json=body, timeout=120)
        seconds.append(time.monotonic() - began)
        content = answer.json()
        endings[f"{answer.status_code} {content.get('code', content.get('status'))}"] += 1
    return endings, statistics.median(seconds)


READY = "200 ready"
STUCK = "503 text-work-stuck"


async def probe(url: str, probes: Counter[str], slowest_s: list[float]) -> None:
    """Ask for readiness again and again, until it is cancelled."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        while True:
            began = time.monotonic()
            probes[_readiness(await client.get("/health/ready?model=ready"))] += 1
            slowest_s.append(time.monotonic() - began)
            await asyncio.sleep(PROBE_EVERY_S)


def _readiness(answer: httpx.Response) -> str:
    content = answer.json()
    return f"{answer.status_code} {content.get('code', content.get('status'))}"


async def load(
    url: str, *, num_clients: int, for_s: float
) -> tuple[Tally, Counter[str], list[float]]:
    """What became of the clients' edits, and of probes beside them with their seconds."""
    probes: Counter[str] = Counter()
    seconds: list[float] = []
    prober = asyncio.create_task(probe(url, probes, seconds))
    tally = await run_clients(url, ANSWERED, num_clients=num_clients, for_s=for_s)
    prober.cancel()
    return tally, probes, seconds


def num_lost(tally: Tally) -> int:
    """Edits that no answer came to: their connection broke, or nothing is known of them."""
    broken = [count for ending, count in tally.endings.items() if not ending[0].isdigit()]
    return tally.num_lost + sum(broken)


def num_left_in_engine(url: str) -> float:
    """Requests that run or wait still, some seconds after nobody waits for an answer."""
    deadline = time.monotonic() + SETTLE_S
    while (num_left := num_in_engine(url)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return num_left


def num_in_engine(url: str) -> float:
    """Requests that run or wait."""
    names = ("apply_num_requests_running", "apply_num_requests_waiting")
    lines = httpx.get(f"{url}/metrics", timeout=60).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(names))


def spin() -> None:
    """Keep a core busy."""
    while True:
        pass


@contextmanager
def busy_cores(num_cores: int) -> Iterator[None]:
    """So many processes that do nothing but work."""
    workers = [multiprocessing.Process(target=spin, daemon=True) for _ in range(num_cores)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()


def main() -> int:
    """Run the rounds and judge them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="embedded", help="the model to serve")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=int, default=0, help="cores that other work has")
    chosen = parser.parse_args()
    is_good = True
    flags = ("--model", chosen.model, "--port", "0", *SETTINGS)
    with busy_cores(chosen.busy), serve_process(*flags) as (_, url):
        wait_until_ready(url, limit_s=600)
        single_edits(url, 10_000)
        for turn in range(chosen.rounds):
            tally, probes, seconds = asyncio.run(
                load(url, num_clients=chosen.clients, for_s=chosen.seconds)
            )
            num_left = num_left_in_engine(url)
            after = _readiness(httpx.get(f"{url}/health/ready?model=ready", timeout=60))
            endings, median_s = single_edits(url, 20_000 + NUM_EDITS * turn)
            num_served = sum(count for name, count in endings.items() if name.startswith("200"))
            is_good = is_good and num_served == NUM_EDITS and not num_lost(tally)
            is_good = is_good and set(probes) <= {READY, STUCK} and not num_left
            is_good = is_good and after == READY
            print(f"round {turn + 1}: under load {dict(tally.endings)}, {num_lost(tally)} lost")
            slowest_s = max(seconds)
            print(f"  {dict(probes)} in {slowest_s:.2f} s; then {after}, {num_left:g} left")
            print(f"  then {num_served} of {NUM_EDITS}, p50 {median_s:.2f} s: {dict(endings)}")
            sys.stdout.flush()
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
