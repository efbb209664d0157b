"""A server process of this installation, on a free loopback port, for as long as a block runs.

LocalServerError
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Self

HOST = "127.0.0.1"
_POLL_S = 0.2
_STOP_S = 15.0
# Long enough for the run without speculation on a slow machine.
_DEADLINE_S = "120"
_NUM_LOG_LINES = 12


class LocalServerError(Exception):
    """The server did not start; the message has the end of its log."""


class LocalServer:
    """Starts with the block and ends with it, whatever happens inside."""

    def __init__(self) -> None:
        self.port = _find_free_port()
        self._resources = ExitStack()
        self._log: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._log = self._resources.enter_context(
            tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")
        )
        command = [sys.executable, "-m", "apply_service", "serve"]
        self._process = subprocess.Popen(
            [*command, "--host", HOST, "--port", str(self.port), "--deadline-s", _DEADLINE_S],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )
        self._resources.callback(_end, self._process)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    def wait_until_ready(self, timeout_s: float) -> float:
        """Seconds until the model is loaded. Raises LocalServerError if that takes too long."""
        started = time.monotonic()
        while not self._is_ready():
            exit_code = None if self._process is None else self._process.poll()
            if exit_code is not None:
                raise LocalServerError(f"the server ended with code {exit_code}:\n{self._tail()}")
            if time.monotonic() - started > timeout_s:
                raise LocalServerError(
                    f"the server was not ready after {timeout_s:.0f} s:\n{self._tail()}"
                )
            time.sleep(_POLL_S)
        return time.monotonic() - started

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("GET", "/health/ready?model=ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _tail(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        return "\n".join(self._log.read().splitlines()[-_NUM_LOG_LINES:])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the server to stop and see to it that it does."""
    process.terminate()
    try:
        process.wait(timeout=_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
