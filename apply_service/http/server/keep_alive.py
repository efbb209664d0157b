"""Sends comments into silent event streams, so that proxies keep the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from litestar.types import ASGIApp, Message, Receive, Scope, Send

COMMENT = b": keep-alive\n\n"
_EVENT_END = b"\n\n"


class KeepAlive:
    """Sends a comment into a stream of events that was silent for `interval_s` seconds."""

    def __init__(self, app: ASGIApp, *, interval_s: float) -> None:
        self._app = app
        self._interval_s = interval_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve; answers that are no event streams pass untouched."""
        stream = _EventStream(send, self._interval_s)
        try:
            await self._app(scope, receive, stream.send)
        finally:
            stream.stop()


class _EventStream:
    """One answer on its way out."""

    def __init__(self, send: Send, interval_s: float) -> None:
        self._send = send
        self._interval_s = interval_s
        self._turn = asyncio.Lock()
        self._is_between_events = True
        self._sent_at = 0.0
        self._beating: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on, never into the middle of a comment."""
        async with self._turn:
            if message["type"] == "http.response.body":
                body = message["body"]
                self._is_between_events = body.endswith(_EVENT_END) if body else True
                if not message["more_body"]:
                    self.stop()
            await self._send(message)
            self._sent_at = asyncio.get_running_loop().time()
        if message["type"] == "http.response.start" and _is_event_stream(message["headers"]):
            self._beating = asyncio.create_task(self._beat())

    def stop(self) -> None:
        """Send no more comments."""
        if self._beating is not None:
            self._beating.cancel()

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(0.0, self._sent_at + self._interval_s - loop.time()))
            async with self._turn:
                if loop.time() < self._sent_at + self._interval_s:
                    continue
                self._sent_at = loop.time()
                if self._is_between_events:
                    await self._send(
                        {"type": "http.response.body", "body": COMMENT, "more_body": True}
                    )


def _is_event_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in headers
    )
