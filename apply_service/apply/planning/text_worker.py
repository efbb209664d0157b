"""A process for the text work of edits, so that the server's own process stays responsive.

It can be killed at any moment: only its current job is lost.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import resource
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from apply_service.apply.errors import ApplyError, TextMemoryError, TextWorkerError
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFileError
from apply_service.observe.free_memory import give_back_free_memory, keep_heaps_small

P = ParamSpec("P")
T = TypeVar("T")

# What is wrong with an edit goes back to who asked; a mistake of ours ends the process.
_FORESEEN_ERRORS = (ApplyError, SnippetError, TextFileError)
# The parser keeps a part of what it has read, so a process does not live for ever.
MAX_JOBS = 256
MAX_MEMORY_BYTES = 1 << 30
# A process that once needed more than this is replaced, because it gives little of it back.
_KEPT_MEMORY_BYTES = 256 << 20
# Past this a process whose server was killed ends by itself.
_ALARM_S = 90
_MAX_TRIES = 2
_CLOSING_S = 5.0
# What a process has imported before it exists: workers are forked from one that has these.
_PRELOADED = [
    "apply_service.apply.planning.text_worker",
    "apply_service.apply.conclusion",
    "apply_service.__main__",
]


class WorkKilledError(Exception):
    """The job was killed on purpose."""


@dataclass(frozen=True, slots=True)
class _Done:
    result: Any
    is_last: bool


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception
    is_last: bool


@dataclass(frozen=True, slots=True)
class _Broken:
    """An internal error as a traceback; the process ends after it."""

    traceback: str


_Answer = _Done | _Failed | _Broken


class TextJob:
    """One call of a function of a module; arguments and result are pickled."""

    def __init__(self, work: Callable[..., Any], args: tuple[Any, ...], options: Any) -> None:
        self.call = (work, args, options)
        # Set by another thread before it kills the process that may have begun the job.
        self.is_killed = False
        # How little of the processor's time it gets beside others, from its beginning.
        self.niceness = 0


class MistakeError(TextWorkerError):
    """An internal error ended the work; `traceback` says which."""

    def __init__(self, traceback: str) -> None:
        super().__init__("the server failed on the text of this edit; its log has the details")
        self.traceback = traceback


class TextWorker:
    """One process: started when there is work, and replaced when it has died.

    One thread at a time may `run` jobs in it; any may `kill` the process or ask about it.
    It ends with the process that made it, however that ends.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._is_niced = False

    @property
    def process_id(self) -> int | None:
        """The id of the process, None while there is none."""
        process = self._process
        return None if process is None else process.pid

    def processor_seconds(self) -> float:
        """Processor seconds used so far; infinite where the system does not say."""
        process_id = self.process_id
        if process_id is None:
            return 0.0
        try:
            stat = Path(f"/proc/{process_id}/stat").read_text()
        except OSError:
            return math.inf
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, job: TextJob) -> Any:
        """The result of the job. Raises the job's errors.

        WorkKilledError if it was killed on purpose; TextWorkerError if the process dies over it
        twice, cannot be started, or has an internal error.
        """
        for _ in range(_MAX_TRIES):
            try:
                answer = self._try_run(job)
            except (EOFError, OSError):  # it died: now, or in silence before this job came
                self.end()
                continue
            if isinstance(answer, _Broken):
                self.end()
                raise MistakeError(answer.traceback)
            if answer.is_last or self._is_niced:
                self.end()
            if isinstance(answer, _Failed):
                raise answer.error
            return answer.result
        raise TextWorkerError(
            "the process for the text of this edit ended twice; send the edit again later, or send"
            " a smaller file"
        )

    def start(self) -> None:
        """Start the process if it is not running. Raises OSError if it cannot be started."""
        if self._is_niced:
            self.end()
        if self._connection is not None:
            return
        # A fork of a process with threads would inherit their locks, and torch with them; this
        # one is forked from a process that has neither.
        forking = multiprocessing.get_context("forkserver")
        forking.set_forkserver_preload(_PRELOADED)
        ours, theirs = forking.Pipe()
        process = forking.Process(target=serve_work, args=(theirs,), name="text-worker")
        process.daemon = True
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._process = process
        self._connection = ours

    def kill(self) -> None:
        """End the process at once; its current job fails."""
        process = self._process
        if process is not None:
            process.kill()

    def give_way(self, niceness: int) -> None:
        """Lower the process's priority below the server's until the job has ended."""
        process_id = self.process_id
        if process_id is not None:
            self._is_niced = True  # which cannot be taken back, so the process ends with the job
            with suppress(OSError):
                own_niceness = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, process_id, own_niceness + niceness)

    def pause(self) -> None:
        """Stop the process, whatever it does, until `resume` or its end."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process continue after a `pause`; harmless without one."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Remove the process; for the thread that runs jobs in it."""
        self._is_niced = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join(_CLOSING_S)

    def _try_run(self, job: TextJob) -> _Answer:
        """Run the job once. Raises WorkKilledError, or EOFError or OSError if the process dies."""
        try:
            self._check_wanted(job)
            self.start()
            connection = self._connection
            assert connection is not None, "a worker that has started has a connection"
            self._check_wanted(job)  # after the start, so that a kill is seen or hits the process
            if job.niceness:
                self.give_way(job.niceness)
            connection.send(job.call)
            return cast(_Answer, connection.recv())
        except (EOFError, OSError):
            self._check_wanted(job)
            raise

    def _signal(self, number: int) -> None:
        process_id = self.process_id
        if process_id is not None:
            with suppress(ProcessLookupError):
                os.kill(process_id, number)

    def _check_wanted(self, job: TextJob) -> None:
        if job.is_killed:
            self.end()
            raise WorkKilledError


def serve_work(connection: Connection) -> None:
    """Run jobs until the other end is closed, as it is when its process ends."""
    # Ctrl-C in a terminal is meant for the server, which lets its requests end first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with suppress(OSError, ValueError):  # not every system has it, and it may be lower already
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    keep_heaps_small()
    # Collections during a job would look at all that it builds, again and again, for nothing;
    # those between jobs need not look at what was imported.
    gc.disable()
    gc.freeze()
    num_done = 0
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            call = connection.recv()
            num_done += 1
            signal.alarm(_ALARM_S)
            answer = _answer(call, is_last=num_done >= MAX_JOBS)
            signal.alarm(0)
            connection.send(answer)
            del answer, call
            give_back_free_memory()


def _answer(call: tuple[Callable[..., Any], Any, Any], *, is_last: bool) -> _Answer:
    work, args, options = call
    try:
        result = work(*args, **options)
    except _FORESEEN_ERRORS as error:
        return _Failed(error, is_last)
    except MemoryError:
        return _Failed(_too_much_memory(), is_last=True)
    except Exception:
        return _Broken(traceback.format_exc())
    used_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return _Done(result, is_last or used_bytes > _KEPT_MEMORY_BYTES)


def _too_much_memory() -> TextMemoryError:
    return TextMemoryError(
        "the text of the edit takes more memory than allowed",
        value=MAX_MEMORY_BYTES,
        limit=MAX_MEMORY_BYTES,
        remedy="send a smaller file or update, or one that is less deeply nested",
    )
