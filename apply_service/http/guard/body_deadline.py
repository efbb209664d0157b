"""Limits the time that a request's body may take to arrive."""

from __future__ import annotations

import asyncio

from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send

from apply_service.http.guard.paths import is_streamed
from apply_service.http.problems import ProblemError, make_problem

# Who streams a body may wait for answers before more of it comes, so much longer than others.
_PAUSE_FACTOR = 20


class BodyDeadline:
    """Ends requests whose bodies arrive too slowly, and their connections.

    They are answered with 408. Where a body is worked on while it comes, each pause in it is
    limited, and the answer that has begun is broken off as if the client had gone.
    """

    def __init__(self, app: ASGIApp, *, timeout_s: float) -> None:
        self._app = app
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve with a `receive` that raises ProblemError (408), or tells of a disconnect."""
        streams = is_streamed(scope["path"])
        body = (_StreamedBody if streams else _Body)(receive, self._timeout_s)

        async def send_unless_late(message: Message) -> None:
            if body.is_late and message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            elif body.is_late and streams:
                return  # without its end the answer cannot be taken for a whole one
            await send(message)

        await self._app(scope, body.receive, send_unless_late)


class _Body:
    """The body of one request, and how long the server may still wait for it."""

    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._timeout_s = timeout_s
        self._left_s = timeout_s
        self._is_complete = False
        self.is_late = False

    async def receive(self) -> ReceiveMessage:
        """The next message; raises ProblemError (408) if the body takes too long."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            message = await self._next(self._left_s)
        except TimeoutError as error:
            raise ProblemError(
                make_problem(
                    408,
                    code="body-too-slow",
                    title="The body did not come in time",
                    detail=f"the server waited {self._timeout_s:g} s for the body",
                    limit=self._timeout_s,
                    remedy="send it faster, or raise receive_timeout_s",
                )
            ) from error
        self._left_s = max(0.0, self._left_s - (loop.time() - started))
        return message

    async def _next(self, timeout_s: float) -> ReceiveMessage:
        """The next message. Raises TimeoutError, but not for a client that has sent all."""
        try:
            async with asyncio.timeout(None if self._is_complete else timeout_s):
                message = await self._receive()
        except TimeoutError:
            self.is_late = True
            raise
        self._is_complete = message["type"] != "http.request" or not message["more_body"]
        return message


class _StreamedBody(_Body):
    """A body that may take as long as it likes, but for its pauses."""

    async def receive(self) -> ReceiveMessage:
        """The next message; a disconnect if it takes too long."""
        try:
            return await self._next(_PAUSE_FACTOR * self._timeout_s)
        except TimeoutError:
            return {"type": "http.disconnect"}
