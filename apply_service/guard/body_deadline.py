"""A body must come in time: who sends it drop by drop would hold a connection for ever."""

from __future__ import annotations

import asyncio

from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send

from apply_service.guard.paths import is_under
from apply_service.problems import ProblemError, make_problem

# Bodies that are worked on while they come: their parts must be in time, not the whole.
_STREAMED_PREFIX = "/v1/batches"


class BodyDeadline:
    """Answers 408, and closes the connection, when the server has waited too long for a body."""

    def __init__(self, app: ASGIApp, *, timeout_s: float) -> None:
        self._app = app
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve with a `receive` that raises ProblemError (408)."""
        body = _Body(receive, self._timeout_s, is_streamed=_is_streamed(scope))

        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and body.is_late:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self._app(scope, body.receive, send_and_close)


class _Body:
    """The body of one request, and how long the server may still wait for it."""

    def __init__(self, receive: Receive, timeout_s: float, *, is_streamed: bool) -> None:
        self._receive = receive
        self._timeout_s = timeout_s
        self._left_s = timeout_s
        self._is_streamed = is_streamed
        self._is_complete = False
        self.is_late = False

    async def receive(self) -> ReceiveMessage:
        """The next message; raises ProblemError (408) if the body takes too long."""
        if self._is_complete:
            return await self._receive()  # nothing but the client's going is left to wait for
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self._left_s):
                message = await self._receive()
        except TimeoutError as error:
            self.is_late = True
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
        if not self._is_streamed:
            self._left_s = max(0.0, self._left_s - (loop.time() - started))
        self._is_complete = message["type"] != "http.request" or not message["more_body"]
        return message


def _is_streamed(scope: Scope) -> bool:
    return is_under(scope["path"], _STREAMED_PREFIX)
