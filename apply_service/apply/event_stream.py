"""The events of one run as a stream: a run that proceeds by itself, and one reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from apply_service.apply.errors import WithdrawnError
from apply_service.apply.events import RunEvent
from apply_service.apply.outcome import Outcome


class EventStream:
    """The sink of one run: iterate for its events and, last, its outcome.

    The run proceeds in a task of its own, however slow the reader is. Leaving early ends the run.
    """

    def __init__(self) -> None:
        self._events: asyncio.Queue[RunEvent | None] = asyncio.Queue()  # None ends it
        self._has_events = False
        self._has_begun = asyncio.Event()
        self._run: asyncio.Task[Outcome] | None = None

    def start(self, run: Coroutine[Any, Any, Outcome]) -> None:
        """Begin a run that writes to this sink."""
        self._run = asyncio.create_task(run)
        self._run.add_done_callback(self._note_end)

    async def wait_until_begun(self) -> None:
        """Wait for the first event or the outcome; raise the error that came before them."""
        await self._has_begun.wait()
        if not self._has_events:
            self._outcome()

    def put(self, event: RunEvent) -> None:
        """Keep an event for the reader."""
        self._events.put_nowait(event)
        self._has_events = True
        self._has_begun.set()

    def cancel(self) -> None:
        """Cancel the run; its remaining events need not be read."""
        if self._run is not None:
            self._run.cancel()

    async def __aiter__(self) -> AsyncIterator[RunEvent | Outcome]:
        try:
            while (event := await self._events.get()) is not None:
                yield event
            yield self._outcome()
        finally:
            self.cancel()

    def _outcome(self) -> Outcome:
        """The outcome of a finished run. Raises the run's error."""
        assert self._run is not None, "a run ends after it was started"
        if self._run.cancelled():
            raise WithdrawnError("the request was cancelled")
        return self._run.result()

    def _note_end(self, run: asyncio.Task[Outcome]) -> None:
        if not run.cancelled():
            run.exception()  # who reads on learns of it; if nobody does, nobody misses it
        self._events.put_nowait(None)
        self._has_begun.set()
