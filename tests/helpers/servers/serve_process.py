"""`apply-service serve` or `engine` as a process, for tests of starts, signals and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[3]
START_LIMIT_S = 180.0


class ServeProcess:
    """One process of a server, or of another command, and its stderr."""

    def __init__(self, *flags: str, command: str = "serve") -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("APPLY_")
        }
        environment.update(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "apply_service", command, "--threads", "1", *flags],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=_hear_ctrl_c,
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            self.log.extend(iter(stream.readline, ""))

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the log matches `pattern`."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            match = re.search(pattern, "".join(self.log))
            if match:
                return match
            assert self.process.poll() is None, "".join(self.log)
            time.sleep(0.05)
        raise AssertionError(f"no {pattern!r} in " + "".join(self.log))

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(START_LIMIT_S)
        self._reader.join(START_LIMIT_S)
        return code

    def kill(self) -> None:
        """Kill the process; harmless if it has ended."""
        self.process.kill()
        self.end()


def wait_until_ready(url: str, *, limit_s: float = START_LIMIT_S) -> None:
    """Wait until the server has loaded its model."""
    deadline = time.monotonic() + limit_s
    while httpx.get(f"{url}/health/ready?model=ready", timeout=START_LIMIT_S).status_code != 200:
        assert time.monotonic() < deadline, f"{url} did not become ready"
        time.sleep(0.05)


def _hear_ctrl_c() -> None:
    """Restore SIGINT, which a shell's background job and its children ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def serve_process(*flags: str) -> Iterator[tuple[ServeProcess, str]]:
    server = ServeProcess(*flags)
    try:
        url = server.wait_for(r"listening on (http://\S+),")[1]
        yield server, url
    finally:
        server.kill()
