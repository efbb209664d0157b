"""Whether a server that is used and abused for long holds no more than at its start. By hand.

`python tests/oracle.py service.soak_run` starts a server with a tiny random model, or
with the one that `--model` names, and for 30 minutes sends it requests of all kinds from 16
clients: edits whole and streamed, by every API and in batches, large ones, wrong ones, clients that
leave in a stream and in the middle of a body, nested bodies, and edits that are dear to plan. Every
four minutes the clients rest. The plans that the server remembers are then replaced by those of the
same small edits, it gives back what nobody uses, and what it holds is looked at. It exits with 1 if
a request is lost or ends in a fault of the server, if more files, processes or blocks of the KV
cache are held than at first, or if memory at rest grew in the second half by more than
`MAX_GROWTH_BYTES`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx
from serve_process import serve_process, wait_until_ready
from server_holdings import Holdings, Server, check_as_before
from tiny_model import write_tiny_model
from traffic import ANSWER_LIMIT_S, HOSTILE, MIXED, SMALL_FUNCTIONS, edit_of, run_clients

from apply_service.apply.planning.plan_memory import MAX_PLANS

WARM_UP_S = 60.0
SLICE_S = 235.0
# The server gives back once a minute what nobody uses.
REST_S = 65.0
SETTLE_S = 2.0
NUM_LOOKS = 5
MAX_GROWTH_BYTES = 8 << 20
SETTINGS = (
    *("--port", "0", "--profile", "embedded", "--compat-review", "accept"),
    *("--requests-per-minute", "0", "--tokens-per-minute", "0", "--max-concurrent", "0"),
    *("--kv-memory", "16MiB", "--cache-memory", "1MiB"),
)
# What a server may say to requests such as these; everything else is a fault.
GOOD_STATUSES = ("2", "4", "left", "503 overloaded", "504 deadline-exceeded")


def soak(server: Server, *, num_clients: int, for_s: float) -> bool:
    """Use a server for so long and print what it holds; whether that is as it should be."""
    endings: Counter[str] = Counter()

    def use(seconds: float, kinds: Sequence[str] = HOSTILE) -> None:
        """Send requests of these kinds for so long."""
        tally = asyncio.run(run_clients(server.url, kinds, num_clients=num_clients, for_s=seconds))
        endings.update(tally.endings)
        endings["lost"] += tally.num_lost

    def when_whole() -> Holdings:
        """What it holds once a process that was killed in the warm-up has come again."""
        looks = []
        for _ in range(NUM_LOOKS):
            use(SETTLE_S, MIXED)
            looks.append(server.holdings())
        return max(looks, key=lambda look: look.num_children)

    use(WARM_UP_S)
    before = when_whole()
    own: list[int] = []
    began = time.monotonic()
    while time.monotonic() < began + for_s:
        use(SLICE_S)
        while server.holdings().num_children < before.num_children:
            use(SETTLE_S, MIXED)  # a process that was killed comes when it is needed
        check_as_before(server, before)
        fill_plan_memory(server.url)
        time.sleep(REST_S)
        own.append(server.memory_bytes())
        print(
            f"{(time.monotonic() - began) / 60:5.1f} min: {own[-1] / 2**20:.1f} MiB and"
            f" {server.children_bytes() / 2**20:.1f} of children, {server.holdings()},"
            f" {endings.total()} requests"
        )
        sys.stdout.flush()
    growth = own[-1] - own[len(own) // 2]
    faults = {
        ending: count
        for ending, count in endings.items()
        if count and not ending.startswith(GOOD_STATUSES)
    }
    print(f"at first {before}, in the end {server.holdings()}")
    print(f"in the second half {growth / 2**20:+.2f} MiB; faults {faults or 0}")
    print(f"endings {dict(endings.most_common())}")
    return growth <= MAX_GROWTH_BYTES and not faults


def fill_plan_memory(url: str) -> None:
    """Send as many different small edits as a server remembers plans of, each time the same."""
    with httpx.Client(base_url=url, timeout=ANSWER_LIMIT_S) as client:
        for number in range(MAX_PLANS):
            edit = edit_of(number, SMALL_FUNCTIONS) | {"use_model": "never"}
            client.post("/v1/apply", json=edit).raise_for_status()


def main() -> int:
    """Run the soak and judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="the model to serve, by default a tiny random one")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=30.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.model is None:
            write_tiny_model(Path(folder), seed=0)
        model = chosen.model or folder
        with serve_process("--model", model, *SETTINGS) as (started, url):
            wait_until_ready(url, limit_s=600)
            server = Server(url, started.process.pid)
            is_good = soak(server, num_clients=chosen.clients, for_s=60 * chosen.minutes)
            tracebacks = [line for line in started.log if "Traceback" in line]
            print(f"{len(tracebacks)} tracebacks in the log")
    return 0 if is_good and not tracebacks else 1


if __name__ == "__main__":
    sys.exit(main())
