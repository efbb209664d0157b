"""The engine for asyncio: one handle a request, an async iterator over its events."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Self

from batching.config import ModelInfo
from batching.errors import DeadlineExceededError, EngineStoppedError
from batching.events import Cancelled, Event, Failed, Finished
from batching.request import EngineRequest
from batching.stats import EngineStats

if TYPE_CHECKING:  # it brings torch, which a server has before it has an engine
    from batching.engine import Engine
    from batching.remote.engine_client import EngineClient

_DRAIN_POLL_S = 0.02
_UP_POLL_S = 0.05
# An engine that works tells between two steps that a deadline has passed; others have so long.
_LATE_S = 0.25


class RequestHandle:
    """One accepted request. Iterate over it to get its events; it ends after the last one.

    Leaving it early, by `async with` or by `cancel`, withdraws the request.
    """

    def __init__(self, engine: Engine | EngineClient, request_id: str) -> None:
        self._engine = engine
        self._request_id = request_id
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._is_done = False

    def cancel(self) -> None:
        """Withdraw the request; its last event still arrives."""
        if not self._is_done:
            self._engine.cancel(self._request_id)

    def put(self, event: Event) -> None:
        """Hand over an event; called on the event loop's thread."""
        self._events.put_nowait(event)

    async def __aiter__(self) -> AsyncIterator[Event]:
        try:
            while not self._is_done:
                event = await self._events.get()
                self._is_done = isinstance(event, Finished | Failed | Cancelled)
                yield event
        finally:
            self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.cancel()


class AsyncEngine:
    """Owns a started engine; to be used from the event loop on which `start` was called.

    The engine is one of this process, or the client of one in another. A request whose deadline has
    passed fails even if the engine says nothing.
    """

    def __init__(self, engine: Engine | EngineClient) -> None:
        self._engine = engine
        self._handles: dict[str, RequestHandle] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._arrived: deque[Event] = deque()
        self._is_called = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def model_info(self) -> ModelInfo:
        """Limits and identity of the model."""
        return self._engine.model_info

    @property
    def is_up(self) -> bool:
        """False while an engine in another process was lost and is not back."""
        return self._engine.is_up

    async def wait_until_up(self) -> None:
        """Wait until an engine that was lost is back."""
        while not self.is_up:
            await asyncio.sleep(_UP_POLL_S)

    def start(self) -> None:
        """Start the engine thread; must run inside the event loop."""
        self._loop = asyncio.get_running_loop()
        self._engine.start(self._publish)

    async def stop(self, drain_s: float = 0.0) -> None:
        """Refuse new requests, let live ones run for up to `drain_s` seconds, fail the rest."""
        self._engine.refuse_new()
        deadline = time.monotonic() + drain_s
        while self._handles and time.monotonic() < deadline:
            await asyncio.sleep(_DRAIN_POLL_S)
        await asyncio.to_thread(self._engine.stop)

    def submit(self, request: EngineRequest) -> RequestHandle:
        """Accept a request; raises what `Engine.submit` raises."""
        if self._loop is None:
            raise EngineStoppedError("the engine has not been started")
        self._engine.submit(request)
        # Events reach `_dispatch` through the loop, so none can come before the handle is known.
        handle = RequestHandle(self._engine, request.request_id)
        self._handles[request.request_id] = handle
        if request.deadline is not None:
            self._timers[request.request_id] = self._loop.call_at(
                request.deadline + _LATE_S, self._expire, request.request_id
            )
        return handle

    def stats(self) -> EngineStats:
        """Counters and gauges of the engine."""
        return self._engine.stats()

    def stalled_s(self) -> float:
        """As in `Engine.stalled_s`."""
        return self._engine.stalled_s()

    def silent_s(self) -> float:
        """As in `EngineClient.silent_s`."""
        return self._engine.silent_s()

    def _expire(self, request_id: str) -> None:
        """Fail a request whose deadline has passed; what the engine still says of it is dropped."""
        self._engine.cancel(request_id)
        error = DeadlineExceededError(
            "the deadline passed while the engine was busy; allow more time or send the edit again"
            " later"
        )
        self._dispatch(Failed(request_id, error))

    def _publish(self, event: Event) -> None:
        """Called on the engine thread."""
        assert self._loop is not None, "the engine publishes only after start"
        self._arrived.append(event)
        # One call takes all that has arrived by then; it is told of later ones by the next.
        if not self._is_called and not self._loop.is_closed():
            self._is_called = True
            self._loop.call_soon_threadsafe(self._dispatch_all)

    def _dispatch_all(self) -> None:
        self._is_called = False
        while self._arrived:
            self._dispatch(self._arrived.popleft())

    def _dispatch(self, event: Event) -> None:
        handle = self._handles.get(event.request_id)
        if handle is None:
            return  # its deadline has passed
        if isinstance(event, Finished | Failed | Cancelled):
            del self._handles[event.request_id]
            timer = self._timers.pop(event.request_id, None)
            if timer is not None:
                timer.cancel()
        handle.put(event)
