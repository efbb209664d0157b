"""The web server's process: the first signal ends it in order, the second at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from types import FrameType

import uvicorn

from apply_service.http.server.draining import Drain
from apply_service.observe.log_stream import drain_stderr
from apply_service.service import ApplyService

_LOGGER = logging.getLogger(__name__)

# Of the time to end, this is kept for those whose requests had to be failed, and for closing.
_CLOSING_S = 2.0
_EXIT_LATE = 1


class GracefulServer(uvicorn.Server):
    """Accepts connections until the end, so that late requests get a 503 with the reason."""

    def __init__(
        self, config: uvicorn.Config, *, service: ApplyService, drain: Drain, drain_s: float
    ) -> None:
        """The process ends at the latest `drain_s` seconds after the first signal."""
        super().__init__(config)
        self._service = service
        self._drain = drain
        self._drain_s = drain_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Task[None] | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal comes or `should_exit` is set."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM and SIGINT."""
        if self._drain.is_draining or self._loop is None:
            os._exit(128 + sig)
        self._drain.begin()
        self._loop.call_soon_threadsafe(self._begin, sig)

    def _begin(self, sig: int) -> None:
        self._service.begin_drain()
        _LOGGER.info(
            "%s: running requests get %g s, new ones are refused; a second signal ends at once",
            signal.Signals(sig).name,
            self._drain_s,
        )
        # The engine may be stuck in a step, which nothing but the end of the process ends.
        watchdog = threading.Timer(max(self._drain_s, _CLOSING_S), _exit_late)
        watchdog.daemon = True
        watchdog.start()
        self._ending = asyncio.create_task(self._end(sig))

    async def _end(self, sig: int) -> None:
        closing_s = min(_CLOSING_S, self._drain_s / 2)
        if not await self._drain.wait_until_idle(self._drain_s - closing_s):
            await self._service.fail_running()
            await self._drain.wait_until_idle(closing_s / 4)
        super().handle_exit(sig, None)


def _exit_late() -> None:
    _LOGGER.error("the server did not end in time, and is ended")
    drain_stderr()
    os._exit(_EXIT_LATE)
