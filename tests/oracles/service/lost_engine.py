"""Whether a server loses nothing when its engine is killed, again and again, under load.

`python tests/oracle.py service.lost_engine` starts a server with the embedded model and sends it
edits from 64 clients, of whom some leave. The engine's process is killed at 20 random moments, or
never (`--kills 0 --requests 1000`). It exits with 1 unless every request ends, as it should, and
the server is ready again within 15 seconds each time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import time

import httpx
from serve_process import serve_process, wait_until_ready
from server_holdings import Server
from traffic import Kind, Tally, run_clients

KINDS: list[Kind] = ["whole"] * 8 + ["stream"] * 7 + ["code_apply"] * 2 + ["leave"] * 3
READY_S = 15.0
SETTINGS = (
    *("--requests-per-minute", "0", "--tokens-per-minute", "0", "--max-concurrent", "0"),
    *("--compat-review", "accept", "--use-model", "always", "--deadline-s", "110"),
)
EXPECTED = {
    *("200", "200 result", "left", "429 queue-full", "503 overloaded", "503 engine-lost"),
    # The code of Morph's API, and a stream whose last event is an error.
    *("503 engine_lost", "200 error"),
}


async def kill_now_and_then(server: Server, number: int, back_s: list[float]) -> None:
    """Kill the engine so often, each time once the server has been ready for a while."""
    generator = random.Random(0)
    async with httpx.AsyncClient(base_url=server.url, timeout=READY_S) as client:
        for _ in range(number):
            await asyncio.sleep(generator.uniform(0.0, 4.0))
            engine = server.engine_id()
            assert engine is not None, "the server is ready, so it has an engine"
            os.kill(engine, signal.SIGKILL)
            began = time.monotonic()
            while server.engine_id() in (None, engine):
                await asyncio.sleep(0.02)
            while (await client.get("/health/ready?model=ready")).status_code != 200:
                await asyncio.sleep(0.05)
            back_s.append(time.monotonic() - began)
            print(f"killed, ready again after {back_s[-1]:.1f} s", flush=True)


async def run(
    server: Server, *, kills: int, clients: int, requests: int
) -> tuple[Tally, list[float]]:
    back_s: list[float] = []
    killing = asyncio.create_task(kill_now_and_then(server, kills, back_s))
    tally = Tally()
    while not killing.done() or tally.num_sent < requests:
        part = await run_clients(server.url, KINDS, num_clients=clients, num_requests=4 * clients)
        tally.endings.update(part.endings)
        tally.num_sent += part.num_sent
    await killing
    return tally, back_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=0, help="at least so many")
    parser.add_argument("flags", nargs="*", help="further flags of the server, behind --")
    options = parser.parse_args()
    with serve_process("--port", "0", *SETTINGS, *options.flags) as (process, url):
        wait_until_ready(url)
        server = Server(url, process.process.pid)
        limits = {name: getattr(options, name) for name in ("kills", "clients", "requests")}
        tally, back_s = asyncio.run(run(server, **limits))
        wait_until_ready(url)
        engine_blocks = server.blocks_in_use()
    print(f"{tally.num_sent} requests, {tally.num_lost} lost: {dict(tally.endings)}")
    slowest_s = max(back_s, default=0.0)
    print(f"{len(back_s)} kills, ready again after at most {slowest_s:.1f} s")
    unexpected = set(tally.endings) - EXPECTED
    is_good = not (tally.num_lost or unexpected or slowest_s > READY_S or engine_blocks)
    if unexpected:
        print(f"unexpected ends: {unexpected}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
