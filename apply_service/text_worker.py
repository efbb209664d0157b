"""A process that does the text side of edits, so that the server's own stays quick."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, ParamSpec, TypeVar, cast

from apply_service.edit.snippet_error import SnippetError
from apply_service.edit.text_file import TextFileError
from apply_service.errors import ApplyError, TextWorkerError

P = ParamSpec("P")
T = TypeVar("T")

# What is wrong with an edit goes back to who asked; a mistake of ours ends the process.
_FORESEEN_ERRORS = (ApplyError, SnippetError, TextFileError)
# The parser keeps a part of what it has read, so a process does not live for ever.
MAX_JOBS = 256
_MAX_TRIES = 2
_CLOSING_S = 5.0


@dataclass(frozen=True, slots=True)
class _Done:
    result: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class TextWorker:
    """One process, started when there is work, and again after `MAX_JOBS` or when it has died.

    One thread at a time may `run` work in it; any may `kill` it. It ends with the process that
    made it, however that ends.
    """

    def __init__(self, *, max_work_s: float) -> None:
        """Work that takes longer than `max_work_s` seconds is given up."""
        self._max_work_s = max_work_s
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._num_done = 0
        self._is_killed = False

    @property
    def process_id(self) -> int | None:
        """The id of the process, None while there is none."""
        return None if self._process is None else self._process.pid

    def run(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """What `work`, a function of a module, gives for these arguments, all of them pickled.

        Raises what it raises, and TextWorkerError if the process dies over it twice or it takes
        too long.
        """
        for _ in range(_MAX_TRIES):
            if self._is_killed:
                break
            try:
                answer = self._try_run((work, args, options))
            except (EOFError, OSError):  # it died: now, or in silence before this work came
                self._end()
                continue
            if isinstance(answer, _Failed):
                raise answer.error
            return cast(T, answer.result)
        raise TextWorkerError(
            "the process that works on large files ended before it was done with this one; send it"
            " again later, or set large_file_workers to 0"
        )

    def kill(self) -> None:
        """End the process at once and for good; what it was doing fails."""
        self._is_killed = True
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Take what is left of the process away; nothing may be running in it."""
        self._is_killed = True
        self._end()

    def _try_run(self, job: tuple[Callable[..., Any], Any, Any]) -> _Done | _Failed:
        """One try. Raises EOFError or OSError if the process dies."""
        connection = self._connection or self._start()
        connection.send(job)
        if not connection.poll(self._max_work_s):
            self._end()
            raise TextWorkerError(
                f"the work on the file took longer than {self._max_work_s:g} s and was ended; send"
                " a smaller file or update"
            )
        answer = cast("_Done | _Failed", connection.recv())
        self._num_done += 1
        if self._num_done >= MAX_JOBS:
            self._end()
        return answer

    def _start(self) -> Connection:
        # A fork of a process with threads would inherit their locks, and torch with them.
        spawning = multiprocessing.get_context("spawn")
        ours, theirs = spawning.Pipe()
        process = spawning.Process(target=serve_work, args=(theirs,), name="text-worker")
        process.daemon = True
        process.start()
        self._process = process
        theirs.close()
        if self._is_killed:
            process.kill()
        self._connection = ours
        self._num_done = 0
        return ours

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join(_CLOSING_S)


def serve_work(connection: Connection) -> None:
    """Do what comes in until the other end is closed, which the end of its process does too."""
    # Ctrl-C in a terminal is meant for the server, which lets its requests end first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Collections during a job would look at all that it builds, again and again, for nothing.
    gc.disable()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            work, args, options = connection.recv()
            try:
                answer: _Done | _Failed = _Done(work(*args, **options))
            except _FORESEEN_ERRORS as error:
                answer = _Failed(error)
            connection.send(answer)
            del answer, work, args, options
            gc.collect()
