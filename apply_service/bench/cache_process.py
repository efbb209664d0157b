"""Starts, asks and ends the processes of `bench cache`."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Self

import msgspec

from apply_service.bench.cache_job import CacheJob, CacheRun, WorkerSettings
from apply_service.errors import ApplyError

_MODULE = "apply_service.bench.cache_worker"
_STOP_S = 20.0


class CacheProcessError(ApplyError):
    """A process of the bench ended early; its own message is on stderr."""


class CacheProcess:
    """Starts with the block, with nothing in memory, and ends with the block."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, msgspec.json.encode(settings).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Wait until the model is loaded."""
        try:
            self._read_line()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, job: CacheJob) -> CacheRun:
        """One edit; blocks until it is done."""
        assert self._process.stdin is not None
        print(msgspec.json.encode(job).decode(), file=self._process.stdin, flush=True)
        return msgspec.json.decode(self._read_line(), type=CacheRun)

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CacheProcessError(
                f"a process of the bench ended with exit code {self._process.wait(_STOP_S)}; its"
                " own message stands above"
            )
        return line

    def _end(self) -> None:
        """Closing its stdin ends the process; one that goes on is killed."""
        with self._process:
            try:
                self._process.communicate(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
