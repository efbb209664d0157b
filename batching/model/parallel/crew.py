"""The processes of the other ranks, as the lead has them: started, told what to do, and ended."""

from __future__ import annotations

import logging
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from batching.config import EngineConfig
from batching.errors import EngineError, EngineLostError, ModelLoadError
from batching.model.parallel.frames import Broken, Join, LeadFrame, RankFrame
from batching.remote.engine_process import how_it_ended, python_command, spawn
from batching.remote.frame_socket import ConnectionLostError, FrameSocket

_LOGGER = logging.getLogger(__name__)
_MODULE = "batching.model.parallel.worker"
# A rank that ends tears the exchanges of others before its own end is seen.
_NOTICE_S = 5.0

Report = Callable[[EngineLostError], None]


class Crew:
    """The ranks behind the lead. If one ends before `close`, all are ended and `watch` is told."""

    def __init__(self, config: EngineConfig) -> None:
        """Start the processes and wait until all go to meet the lead. Raises ModelLoadError."""
        self._size = config.tensor_parallel
        self._folder = tempfile.TemporaryDirectory(prefix="ranks-")
        self.meeting = Path(self._folder.name) / "meeting"
        self._lock = threading.Lock()
        self._report: Report | None = None
        self._lost: EngineLostError | None = None
        self._has_lost = threading.Event()
        self._is_ready = self._is_closing = False
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[FrameSocket[RankFrame]] = []
        try:
            for rank in range(1, self._size):
                self._start(config, rank)
            for connection in self._connections:
                if isinstance(frame := connection.receive(), Broken):
                    raise ConnectionLostError(frame.reason)
        except ConnectionLostError as error:
            self.close()
            raise ModelLoadError(f"a rank ended while it was started: {error}") from error
        for rank in range(1, self._size):
            threading.Thread(target=self._watch_rank, args=(rank,), daemon=True).start()

    @property
    def process_ids(self) -> list[int]:
        """Of the ranks behind the lead, in their order."""
        return [process.pid for process in self._processes]

    def watch(self, report: Report) -> None:
        """Have `report` called, on any thread, if a rank is lost or was lost already."""
        with self._lock:
            self._report, lost = report, self._lost
        if lost is not None:
            report(lost)

    def tell(self, frame: LeadFrame) -> None:
        """Tell all ranks to do what the lead is about to do."""
        for connection in self._connections:
            connection.send(frame)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """While the lead loads its own part; ends all ranks and raises ModelLoadError."""
        try:
            yield
            self._is_ready = True
        except EngineError:
            self.close()
            raise
        except (RuntimeError, ConnectionLostError) as error:
            lost = self._wait_for_reason(error)
            self.close()
            raise ModelLoadError(str(lost)) from error

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """While all ranks do the same. After an error they do not any more: EngineLostError."""
        if self._has_lost.is_set():
            raise self._own_loss()
        try:
            yield
        except Exception as error:  # whatever it is, the ranks stand at different places
            raise self._wait_for_reason(error) from error

    def close(self) -> None:
        """End all ranks and wait for them."""
        self._is_closing = True
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            how_it_ended(process)
        with suppress(OSError):
            self._folder.cleanup()

    def _start(self, config: EngineConfig, rank: int) -> None:
        process, connection = spawn(python_command(_MODULE), RankFrame)
        self._processes.append(process)
        self._connections.append(connection)
        connection.send(Join.of(config, rank=rank, meeting=self.meeting))

    def _watch_rank(self, rank: int) -> None:
        connection, reason = self._connections[rank - 1], ""
        with suppress(ConnectionLostError):
            while True:
                frame = connection.receive()
                if isinstance(frame, Broken):
                    reason = f": {frame.reason}"
        if not self._is_closing:
            how = how_it_ended(self._processes[rank - 1])
            self._lose(f"rank {rank} of {self._size} {how}{reason}")

    def _wait_for_reason(self, error: Exception) -> EngineLostError:
        """The loss behind an error of an exchange; the error itself is one if there is no other."""
        if not self._has_lost.wait(_NOTICE_S):
            self._lose(f"the ranks fell out of step: {type(error).__name__}: {error}")
        return self._own_loss()

    def _own_loss(self) -> EngineLostError:
        """An error of the caller's own: one that is raised again and again grows by each."""
        assert self._lost is not None, "it is set before the event"
        return EngineLostError(str(self._lost))

    def _lose(self, what: str) -> None:
        remedy = "send the request again in a moment" if self._is_ready else "see the log"
        with self._lock:
            if self._lost is not None:
                return
            self._lost = lost = EngineLostError(f"{what}; all ranks stop, {remedy}")
            report = self._report
        _LOGGER.error("%s, so all ranks stop", what)
        for process in self._processes:
            process.kill()
        self._has_lost.set()
        if report is not None:
            report(lost)
