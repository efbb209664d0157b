"""Runs jobs of a bench in another process; jobs and answers are lines of JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

import msgspec

from apply_service.apply.errors import ApplyError

_STOP_S = 20.0

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class WorkerEndedError(ApplyError):
    """The process ended early; its own message is on stderr."""


class WorkerProcess(Generic[Job, Answer]):
    """Starts with the block, is idle between jobs and ends with the block."""

    def __init__(
        self,
        module: str,
        arguments: list[str],
        *,
        answer_type: type[Answer],
        interpreter: Sequence[str] = (sys.executable, "-m"),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`module` writes one line when it is ready, then one for each line that it reads.

        `interpreter` is the command that runs it, `environment` by default that of this process.
        """
        self._module = module
        self._answer_type = answer_type
        self._greeting = ""
        self._process = subprocess.Popen(
            [*interpreter, module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    @property
    def greeting(self) -> str:
        """The line with which the process said that it is ready."""
        return self._greeting

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most resident memory since the process began; None if the system does not say."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return None
        peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(peaks[0]) * 1024 if peaks else None

    def __enter__(self) -> Self:
        """Wait until the process is ready."""
        try:
            self._greeting = self._read_line()
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

    @property
    def is_running(self) -> bool:
        """True if it takes jobs."""
        return self._process.poll() is None

    def run(self, job: Job) -> Answer:
        """One job; blocks until it is done."""
        assert self._process.stdin is not None
        try:
            print(msgspec.json.encode(job).decode(), file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise self._ended_early() from error
        return msgspec.json.decode(self._read_line(), type=self._answer_type)

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended_early()
        return line

    def _ended_early(self) -> WorkerEndedError:
        exit_code = self._process.wait(_STOP_S)
        return WorkerEndedError(
            f"{self._module} ended with exit code {exit_code}; its own message stands above"
        )

    def _end(self) -> None:
        """Closing its stdin ends the process; one that goes on is killed."""
        with self._process:
            try:
                self._process.communicate(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
