"""What Ray Serve adds to an edit: the same service alone and behind Serve's proxy, in turns."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from benchmarks.fleet.ray_cluster import ray_cluster

_LIMIT_S = 120.0
_NUM_WARM_UP = 20
_SETTINGS: dict[str, Any] = {
    "use_model": "never",
    "allow_anonymous": True,
    "requests_per_minute": 0,
    "tokens_per_minute": 0,
    "text_workers": 1,
    "log_level": "warning",
}


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds of an edit at the client: median and 95th of 100."""

    alone_ms: tuple[float, float]
    behind_ms: tuple[float, float]

    def __str__(self) -> str:
        rows = (
            ("alone", *self.alone_ms),
            ("behind Ray Serve", *self.behind_ms),
            ("difference", *(b - a for a, b in zip(self.alone_ms, self.behind_ms, strict=True))),
        )
        lines = (f"| {name} | {median:.1f} | {tail:.1f} |" for name, median, tail in rows)
        return "\n".join(["| service | p50 ms | p95 ms |", "|---|---|---|", *lines])


def measure_overhead(num_edits: int) -> Overhead:
    """Send the edits one after another, alternately to both, after some to warm up."""
    with ray_cluster() as cluster, _alone() as url:
        cluster.deploy(_SETTINGS, num_replicas=1)
        with (
            httpx.Client(base_url=url, timeout=_LIMIT_S) as alone,
            httpx.Client(base_url=cluster.url, timeout=_LIMIT_S) as behind,
        ):
            pairs = [
                (_seconds(alone, number), _seconds(behind, number))
                for number in range(_NUM_WARM_UP + num_edits)
            ][_NUM_WARM_UP:]
    of_alone, of_behind = zip(*pairs, strict=True)
    return Overhead(_quantiles_ms(of_alone), _quantiles_ms(of_behind))


@contextmanager
def _alone() -> Iterator[str]:
    """The URL of the service in a process of its own."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in _SETTINGS.items()]
    command = [sys.executable, "-m", "apply_service", "serve", "--port=0", "--log-level=info"]
    process = subprocess.Popen([*command, *flags[:-1]], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if match := re.search(r"listening on (http://[\w.:]+)", line):
                break
        else:
            raise AssertionError("the service ended before it listened")
        # It writes a line for each request, into a pipe that nobody reads otherwise.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        yield match[1]
    finally:
        process.kill()
        process.wait()
    drain.wait()


def _seconds(client: httpx.Client, number: int) -> float:
    lines = "".join(f"    value_{line} = compute({line})\n" for line in range(120))
    body = {
        "original": f"def file_{number}():\n{lines}",
        "update": "<<<<<<< SEARCH\n    value_60 = compute(60)\n=======\n    value_60 = 0\n"
        ">>>>>>> REPLACE\n",
    }
    start = time.perf_counter()
    client.post("/v1/apply", json=body).raise_for_status()
    return time.perf_counter() - start


def _quantiles_ms(seconds: tuple[float, ...]) -> tuple[float, float]:
    twentieths = statistics.quantiles(seconds, n=20)
    return 1e3 * twentieths[9], 1e3 * twentieths[18]
