"""Stands where an engine would, and has one in another process."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from batching.config import ModelInfo
from batching.errors import EngineError, EngineLostError, EngineStoppedError, ModelLoadError
from batching.events import Cancelled, Event, Failed, Finished
from batching.live_requests import LiveRequests
from batching.remote.frame_socket import ConnectionLostError, FrameSocket
from batching.remote.frames import (
    HEARTBEAT_S,
    Cancel,
    EngineFrame,
    Events,
    Hello,
    Pulse,
    StartFailed,
    Stop,
    Submit,
    error_of,
    protocol,
)
from batching.request import EngineRequest
from batching.stats import EngineStats

_LOGGER = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.25
MAX_PAUSE_S = 8.0
# An engine that ran for so long was no failure of its start.
_STEADY_S = 60.0
# An engine that misses so many heartbeats is silent.
_MAX_MISSED = 2
# Longer than a process that was told to stop may take.
_END_S = 15.0
_POLL_S = 0.1


class EngineLink(Protocol):
    """A way to an engine's process."""

    @property
    def connection(self) -> FrameSocket[EngineFrame]:
        """The socket."""
        ...

    def kill(self) -> None:
        """End the connection at once, and the process if it is ours."""
        ...

    def close(self) -> str:
        """End the connection, and the process if it is ours; how that ended, in words."""
        ...


class EngineClient:
    """An engine in another process, with the interface of `Engine`.

    `connect` starts or finds it and returns before it is ready. Where it is lost, its requests fail
    with EngineLostError, and it is connected to again, sooner or later. One that is ready and then
    silent for `stall_s` seconds is killed, and so lost.
    """

    def __init__(
        self,
        connect: Callable[[], EngineLink],
        *,
        check: Callable[[ModelInfo], None] | None = None,
        stall_s: float = 60.0,
    ) -> None:
        """Wait for the engine. Raises EngineError if there is none, or what `check` raises.

        `check` is asked about each engine that is connected to; it may raise EngineError.
        """
        self._connect = connect
        self._check = check
        self._max_missed = max(_MAX_MISSED, math.ceil(stall_s / HEARTBEAT_S))
        self._num_missed = 0
        self._link, hello = self._first_link()
        self._hello = hello
        self._live = LiveRequests(hello.max_live)
        self._stats: EngineStats | None = None
        self._stalled_s = 0.0
        self._is_up = True
        self._is_stopping = threading.Event()
        self._publish: Callable[[Event], None] = _discard
        self._thread = threading.Thread(target=self._run, name="engine-client", daemon=True)
        self._wait_for_figures()

    @property
    def model_info(self) -> ModelInfo:
        """Limits and identity of the model."""
        return self._hello.model_info

    @property
    def is_up(self) -> bool:
        """False while a lost engine has not come back."""
        return self._is_up

    def start(self, publish: Callable[[Event], None]) -> None:
        """Begin to read; `publish` is called on a thread of the client with each event."""
        self._publish = publish
        self._thread.start()

    def submit(self, request: EngineRequest) -> None:
        """Accept a request from any thread; decided without asking the engine.

        Raises as `Engine.submit` does, EngineLostError while there is no engine, and
        NotPlainDataError.
        """
        frame = Submit.of(request)
        if not self._is_up:
            raise _lost()
        self._live.accept(request, self.model_info)
        try:
            self._link.connection.post(frame)
        except ConnectionLostError as error:
            # Whoever ends a request without an engine tells its owner: the reader, or this thread.
            if self._live.end(request.request_id):
                raise _lost() from error

    def cancel(self, request_id: str) -> None:
        """Withdraw a request from any thread."""
        with suppress(ConnectionLostError):
            self._link.connection.post(Cancel(request_id))

    def refuse_new(self) -> None:
        """Take no new requests from now on; those accepted go on."""
        self._live.refuse_new()

    def stop(self) -> None:
        """Fail what is unfinished and end the engine's process, if it is ours; waits for it."""
        self.refuse_new()
        self._is_stopping.set()
        with suppress(ConnectionLostError):
            self._link.connection.post(Stop())
        deadline = time.monotonic() + _END_S
        while self._thread.is_alive():
            self._thread.join(_POLL_S)
            if self.silent_s() or time.monotonic() > deadline:
                self._link.kill()
        self._link.close()

    def stats(self) -> EngineStats:
        """The engine's figures of a moment ago."""
        assert self._stats is not None, "the first ones come before the client is used"
        return self._stats

    def stalled_s(self) -> float:
        """As in `Engine.stalled_s`, when the engine was last heard."""
        return self._stalled_s if self._is_up else 0.0

    def silent_s(self) -> float:
        """For how long the engine's process shows no sign of life; 0 while it is heard or lost."""
        is_silent = self._is_up and self._num_missed >= _MAX_MISSED
        return self._num_missed * HEARTBEAT_S if is_silent else 0.0

    def _first_link(self) -> tuple[EngineLink, Hello]:
        link = self._link = self._connect()
        try:
            hello = _greeted(link)
            if self._check is not None:
                self._check(hello.model_info)
            link.connection.limit_silence(HEARTBEAT_S)
            return link, hello
        except EngineError:
            link.close()
            raise

    def _wait_for_figures(self) -> None:
        while self._stats is None:
            try:
                self._take(self._next_frame())
            except ConnectionLostError as error:
                raise EngineLostError(f"the engine {self._link.close()} at its start") from error

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            with suppress(ConnectionLostError):
                while True:
                    self._take(self._next_frame())
            self._is_up = False
            how = self._link.close()
            is_stopping = self._is_stopping.is_set()
            if not is_stopping:
                _LOGGER.error("the engine %s; it is started again", how)
            self._fail_live(is_stopping)
            if is_stopping or not self._come_back(began):
                return

    def _come_back(self, began: float) -> bool:
        """Connect again, with growing pauses; False if the client is stopped meanwhile."""
        pause_s = 0.0 if time.monotonic() - began > _STEADY_S else FIRST_PAUSE_S
        while not self._is_stopping.wait(pause_s):
            try:
                self._link, self._hello = self._first_link()
            except (EngineError, OSError) as error:
                pause_s = min(max(2 * pause_s, FIRST_PAUSE_S), MAX_PAUSE_S)
                _LOGGER.error("the engine did not start, again in %.1f s: %s", pause_s, error)
                continue
            self._num_missed, self._stalled_s = 0, 0.0
            self._is_up = True
            _LOGGER.info("the engine is back")
            return True
        return False

    def _fail_live(self, is_stopping: bool) -> None:
        for request_id in self._live.live:
            error = (
                EngineStoppedError("the engine was stopped before the request was done")
                if is_stopping
                else _lost()
            )
            self._tell(Failed(request_id, error))

    def _next_frame(self) -> EngineFrame:
        """What the engine sends next. Raises ConnectionLostError once it was silent for too long.

        What has come is read first, so a pause of this process is no silence of the engine.
        """
        while True:
            try:
                frame = self._link.connection.receive()
            except TimeoutError:
                self._num_missed += 1
                if self._num_missed == self._max_missed:
                    _LOGGER.error("the engine was silent for %g s, the limit", self.silent_s())
                    self._link.kill()
                elif self._num_missed == _MAX_MISSED:
                    _LOGGER.warning("the engine shows no sign of life")
            else:
                if self.silent_s():
                    _LOGGER.info("the engine shows signs of life again")
                self._num_missed = 0
                return frame

    def _take(self, frame: EngineFrame) -> None:
        if isinstance(frame, Pulse):
            self._stats, self._stalled_s = frame.stats, frame.stalled_s
        elif isinstance(frame, Events):
            for event in frame.unwrap():
                self._tell(event)

    def _tell(self, event: Event) -> None:
        """Publish an event of a request that has not had its last one."""
        is_last = isinstance(event, Finished | Failed | Cancelled)
        request_id = event.request_id
        if self._live.end(request_id) if is_last else request_id in self._live:
            self._publish(event)


def _greeted(link: EngineLink) -> Hello:
    """What an engine says when it is ready. Raises EngineError."""
    try:
        frame = link.connection.receive()
    except ConnectionLostError as error:
        raise EngineLostError(f"the engine ended while it was started: {error}") from error
    if isinstance(frame, StartFailed):
        raise error_of(frame.kind, frame.message)
    if not isinstance(frame, Hello):
        raise EngineLostError(f"the engine began with {type(frame).__name__}; update both ends")
    if frame.protocol != protocol():
        raise ModelLoadError(
            "the engine is of another release than this server; install one for both, and start the"
            " engine again"
        )
    return frame


def _lost() -> EngineLostError:
    return EngineLostError(
        "the engine was lost and is being started again; send the request again in a moment"
    )


def _discard(_event: Event) -> None:
    """Nobody listens before `start`."""
