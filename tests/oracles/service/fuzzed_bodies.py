"""A thousand wrong requests to every route of a real server, and an ordinary edit behind each lot.

`python tests/oracle.py service.fuzzed_bodies` starts a server with a tiny random model,
or with the one that `--model` names. It prints how each route answered, and exits with 1 if there
was a 500, a request without an answer within a minute, or an ordinary edit that was not merged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import httpx
from fuzzed_requests import ROUTES, Tally, fuzzed_requests, send_fuzzed
from serve_process import serve_process, wait_until_ready
from tiny_model import write_tiny_model

SETTINGS = ("--deadline-s", "10", "--compat-review", "accept", "--log-level", "info")
EDIT = {"original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n", "use_model": "never"}
MERGED = "a = 1\nb = 3\n"


def fuzz(url: str, route: str, *, count: int, seed: int) -> bool:
    """Send all requests to a route and print what came of them; whether that is as it should be."""
    tally, slowest_s = Tally(), 0.0
    for request in fuzzed_requests(route, count=count, seed=seed):
        began = time.monotonic()
        send_fuzzed(url, request, tally)
        slowest_s = max(slowest_s, time.monotonic() - began)
    answer = httpx.post(f"{url}/v1/apply", json=EDIT, timeout=60)
    is_merged = answer.status_code == 200 and answer.json()["merged"] == MERGED
    statuses = ", ".join(f"{status}: {n}" for status, n in sorted(tally.statuses.items()))
    print(f"{route:29} slowest {slowest_s:5.2f} s; {statuses}", flush=True)
    for fault in tally.faults:
        print(f"  {fault[:1500]}", flush=True)
    return is_merged and not tally.faults


def main() -> int:
    """Fuzz the routes one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model to serve instead of the tiny one")
    parser.add_argument("--count", type=int, default=1000, help="requests to each route")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--route", action="append", choices=ROUTES, help="this one alone")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--model", chosen.model or folder, "--port", "0", *SETTINGS]
        if chosen.model is None:
            write_tiny_model(Path(folder), seed=0)
            flags += ["--profile", "embedded"]
        with serve_process(*flags) as (server, url):
            wait_until_ready(url)
            results = [
                fuzz(url, route, count=chosen.count, seed=chosen.seed)
                for route in chosen.route or ROUTES
            ]
            is_alive = server.process.poll() is None
            log = [line for line in server.log if '"level": "error"' in line or "Traceback" in line]
    print(
        f"the server {'lives' if is_alive else 'has died'}; {len(log)} lines of errors in its log"
    )
    print("".join(log[:20]), end="")
    return 0 if all(results) and is_alive else 1


if __name__ == "__main__":
    sys.exit(main())
