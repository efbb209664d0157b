"""Asks a path of a server repeatedly, as a program of its own so that nothing delays it.

`python health_probe.py URL RATE` prints "ready" and then, for each answer, its status and its
milliseconds, until its input is closed.
"""

from __future__ import annotations

import http.client
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Probed:
    """The results of a probe: milliseconds of good answers, and the statuses of the others."""

    milliseconds: list[float] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """The milliseconds that this share of the good answers does not exceed."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def probing(url: str, *, per_s: int) -> Iterator[Probed]:
    """Ask while the block runs; the results are complete when it has ended."""
    probed = Probed()
    with subprocess.Popen(
        [sys.executable, __file__, url, str(per_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield probed
        finally:
            for line in process.communicate()[0].splitlines():
                status, milliseconds = line.split()
                if status == "200":
                    probed.milliseconds.append(float(milliseconds))
                else:
                    probed.failures.append(int(status))


def main(url: str, per_s: int) -> None:
    """Print the answers until the input is closed."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    lines: list[str] = []
    print("ready", flush=True)
    wait_s = 0.0
    while not select.select([sys.stdin], [], [], wait_s)[0]:
        started_at = time.perf_counter()
        connection.request("GET", address.path)
        response = connection.getresponse()
        response.read()
        seconds = time.perf_counter() - started_at
        lines.append(f"{response.status} {1e3 * seconds:.3f}")
        wait_s = max(0.0, 1 / per_s - seconds)
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
