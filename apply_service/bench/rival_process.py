"""Transformers in a process of its own, as it would run alone, with the same environment as ours.

In one process with the engine, each would keep a team of OpenMP threads, and both would be slower.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from apply_service.bench.speed_run import RivalRequest, SpeedRun
from apply_service.errors import ApplyError

_MODULE = "apply_service.bench.transformers_baseline"
_STOP_S = 10.0


class RivalError(ApplyError):
    """The rival's process ended early; its own message is on stderr."""


class RivalProcess:
    """Starts with the block, is idle between requests and ends with the block."""

    def __init__(self, model_dir: Path, *, num_threads: int | None) -> None:
        threads = [] if num_threads is None else [str(num_threads)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(model_dir), *threads],
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

    def run(self, request: RivalRequest) -> SpeedRun:
        """One generation; blocks until it is done. The seconds are those of `generate` alone."""
        assert self._process.stdin is not None
        try:
            print(msgspec.json.encode(request).decode(), file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise self._ended_early() from error
        return msgspec.json.decode(self._read_line(), type=SpeedRun)

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended_early()
        return line

    def _ended_early(self) -> RivalError:
        exit_code = self._process.wait(_STOP_S)
        return RivalError(
            f"transformers' process ended with exit code {exit_code}; its own message stands above"
        )

    def _end(self) -> None:
        """Closing its stdin ends the process; one that goes on is killed."""
        with self._process:
            try:
                self._process.communicate(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
