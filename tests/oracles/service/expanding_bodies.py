"""Small bodies that stand for large texts, sent to a real server: its memory and its health.

`python tests/oracle.py service.expanding_bodies` prints, for each kind of body, the answers, the
slowest one, and how far the memory of the server and its processes rose above that before. It exits
with 1 after a fault, a rise of more than 60 MB, or a health check slower than half a second.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from expanding_requests import expanding_requests
from fuzzed_requests import Tally, send_fuzzed
from health_probe import probing
from serve_process import serve_process, wait_until_ready
from server_holdings import Server
from tiny_model import write_tiny_model

MAX_GROWTH_BYTES = 60_000_000
MAX_HEALTH_MS = 500.0
PROBES_PER_S = 20
SAMPLES_PER_S = 20
NUM_WORKERS = 2
FLAGS = (
    *("--profile", "embedded", "--deadline-s", "20", "--use-model", "never"),
    *("--text-workers", str(NUM_WORKERS)),
)


class MemoryPeak:
    """The highest memory of a server and its children since the last `take`, in bytes."""

    def __init__(self, server: Server, process_id: int) -> None:
        self._server = server
        self._process_id = process_id
        self._peak = 0
        threading.Thread(target=self._sample, daemon=True).start()

    def take(self) -> int:
        """The peak; the next one begins."""
        peak, self._peak = self._peak, 0
        return peak

    def _sample(self) -> None:
        while True:
            with suppress(FileNotFoundError, ProcessLookupError):
                ids = [self._process_id, *self._server.children()]
                self._peak = max(self._peak, sum(map(_own_bytes, ids)))
            time.sleep(1 / SAMPLES_PER_S)


def _own_bytes(process_id: int) -> int:
    """A process's proportional share of the memory that it is in."""
    lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10


def main() -> int:
    """Send the bodies one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2100)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    slowest_s: defaultdict[str, float] = defaultdict(float)
    growths: defaultdict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_model(Path(folder), seed=0)
        with serve_process("--model", folder, "--port", "0", *FLAGS) as (process, url):
            wait_until_ready(url)
            with ThreadPoolExecutor(2 * NUM_WORKERS) as pool:  # what first requests load stays
                requests = expanding_requests(count=90, seed=chosen.seed + 1)
                list(pool.map(lambda request: send_fuzzed(url, request, Tally()), requests))
            process_id = process.process.pid
            peak = MemoryPeak(Server(url, process_id), process_id)
            time.sleep(1)
            before = peak.take()
            with probing(f"{url}/health/live", per_s=PROBES_PER_S) as probed:
                for request in expanding_requests(count=chosen.count, seed=chosen.seed):
                    began = time.monotonic()
                    send_fuzzed(url, request, tallies[request.kind])
                    slowest_s[request.kind] = max(slowest_s[request.kind], time.monotonic() - began)
                    growths[request.kind] = max(growths[request.kind], peak.take() - before)
    for kind, tally in tallies.items():
        statuses = ", ".join(f"{status}: {n}" for status, n in sorted(tally.statuses.items()))
        print(
            f"{kind:22} slowest {slowest_s[kind]:5.2f} s; {growths[kind] / 1e6:+.1f} MB; {statuses}"
        )
        for fault in tally.faults[:3]:
            print(f"  {fault[:1000]}")
    slowest_ms = max(probed.milliseconds)
    print(f"{len(probed.milliseconds)} health checks, the slowest took {slowest_ms:.0f} ms")
    is_small = max(growths.values()) <= MAX_GROWTH_BYTES
    has_faults = any(tally.faults for tally in tallies.values()) or bool(probed.failures)
    return 0 if is_small and not has_faults and slowest_ms <= MAX_HEALTH_MS else 1


if __name__ == "__main__":
    sys.exit(main())
