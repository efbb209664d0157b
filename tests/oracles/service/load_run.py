"""Many clients at once against a real server, and how quick its health stays. Run by hand.

`python tests/oracle.py service.load_run` starts a server with a tiny random model, or
with the one that `--model` names, and sends it edits from 64 clients for 60 seconds; one in twenty
is of a file of 340 kB. Meanwhile a process of its own asks /health/live 20 times a second. It
exits with 1 if an answer is missing, if an error is not one of load, or if the p99 of /health/live
is over 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from health_probe import Probed, probing
from serve_process import serve_process
from tiny_model import write_tiny_model
from traffic import ANSWERED, Tally, run_clients

MAX_LIVE_P99_MS = 50.0
PROBES_PER_S = 20
WARM_UP_REQUESTS = 20
SETTINGS = (
    *("--requests-per-minute", "0", "--tokens-per-minute", "0", "--max-concurrent", "0"),
    *("--compat-review", "accept", "--log-level", "info"),
)


def report(tally: Tally, live: Probed, elapsed_s: float) -> bool:
    """Print the figures; whether they are as they should be."""
    good, busy = ("200", "200 result"), ("429 queue-full", "503 overloaded")
    errors = {
        ending: count for ending, count in tally.endings.items() if ending not in (*good, *busy)
    }
    num_answers = sum(tally.endings[ending] for ending in good)
    print(f"requests       {tally.num_sent} in {elapsed_s:.1f} s")
    print(f"answers        {num_answers}, {num_answers / elapsed_s:.1f} a second")
    print(f"sent away      {sum(tally.endings[ending] for ending in busy)}")
    print(f"other errors   {errors or 0}")
    print(f"lost           {tally.num_lost}")
    for kind, seconds in sorted(tally.seconds.items()):
        slow = sorted(seconds)[int(0.99 * len(seconds))]
        middle = statistics.median(seconds)
        print(f"{kind:14} {len(seconds)} answers, p50 {middle:.2f} s, p99 {slow:.2f} s")
    p50, p99 = live.percentile(0.5), live.percentile(0.99)
    print(
        f"/health/live   {len(live.milliseconds)} answers, {len(live.failures)} errors,"
        f" p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {max(live.milliseconds):.1f} ms"
    )
    return not (errors or tally.num_lost or live.failures) and p99 <= MAX_LIVE_P99_MS


def main() -> int:
    """Run the load and judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model to serve instead of the tiny one")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", default="8", help="the setting text_workers")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--model", chosen.model or folder, "--port", "0", *SETTINGS]
        flags += ["--text-workers", chosen.workers]
        if chosen.model is None:
            write_tiny_model(Path(folder), seed=0)
            flags += ["--profile", "embedded"]
        with serve_process(*flags) as (server, url):
            while httpx.get(f"{url}/health/ready?model=ready", timeout=60).status_code != 200:
                time.sleep(0.1)
            asyncio.run(run_clients(url, ANSWERED, num_clients=4, num_requests=WARM_UP_REQUESTS))
            started_at = time.monotonic()
            with probing(f"{url}/health/live", per_s=PROBES_PER_S) as live:
                tally = asyncio.run(
                    run_clients(url, ANSWERED, num_clients=chosen.clients, for_s=chosen.seconds)
                )
            is_good = report(tally, live, time.monotonic() - started_at)
            if tally.endings["500 internal"]:
                print("".join(server.log), file=sys.stderr)
            return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
