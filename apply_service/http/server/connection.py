"""The server's HTTP protocol, with the limits that middleware cannot enforce."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from apply_service.http.errors import error_answer
from apply_service.http.problems import Problem, make_problem
from apply_service.http.server.strict_http import StrictConnection

_LOGGER = logging.getLogger(__name__)

# Little is buffered for a client that does not read, so that it is soon found out.
_MAX_UNSENT_BYTES = 32 << 10
_MAX_HEAD_BYTES = 64 << 10
# A client that still sends its body when it is answered has so long to see the answer.
_LINGER_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of connections; times in seconds."""

    max_connections: int
    receive_timeout_s: float
    send_timeout_s: float


class _Transport:
    """A connection that its protocol ends; otherwise the transport that it is made of."""

    def __init__(self, transport: asyncio.Transport, protocol: GuardedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Leave it to the protocol when."""
        self._protocol.end(self._transport)

    def is_closing(self) -> bool:
        """True if nothing is read or written any more."""
        return self._protocol.is_lingering or self._transport.is_closing()


class GuardedProtocol(H11Protocol):
    """Ends connections that are too slow to send a request or to read their answer.

    What breaks the rules of HTTP is answered with 400, and ends its connection as well.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = self._strict = StrictConnection(max_head_bytes=_MAX_HEAD_BYTES)
        self._limits = limits
        self._receive_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or refuse it if there are too many."""
        super().connection_made(cast(asyncio.Transport, _Transport(transport, self)))
        transport.set_write_buffer_limits(high=_MAX_UNSENT_BYTES)
        _limit_unread(transport, self._limits.send_timeout_s)
        if len(self.connections) > self._limits.max_connections:
            self._refuse(_too_many_connections(self._limits.max_connections))
            transport.close()
            return
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._expect_nothing()
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        self.resume_writing()
        super().connection_lost(exc)

    def end(self, transport: asyncio.Transport) -> None:
        """Close the connection, once the client has sent its body or had time to see its answer.

        A connection that is closed with unread bytes is reset, and the client may lose the answer
        (RFC 9112, section 9.6). What still comes is thrown away.
        """
        is_read = self.conn.their_state not in (h11.SEND_BODY, h11.ERROR)
        if is_read or transport.is_closing() or not transport.can_write_eof():
            transport.close()
        elif self._linger_timer is None:
            self._linger_timer = self.loop.call_later(_LINGER_S, transport.close)
            transport.write_eof()
            transport.resume_reading()

    @property
    def is_lingering(self) -> bool:
        """True if the answer is sent and only the client's end is waited for."""
        return self._linger_timer is not None

    def data_received(self, data: bytes) -> None:
        """Take received bytes; the deadline of a request runs until its head is complete."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_serving:
            self._expect_nothing()
        elif self._receive_timer is None:
            self._expect_request()

    def send_400_response(self, msg: str) -> None:
        """Send a 400 with the reason, unless an answer has begun, and close the connection."""
        if self._is_serving:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()  # what came so far must not be taken for the whole
                return
        self._refuse(_bad_request(self._strict.flaw or msg))

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read its answer."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self._limits.send_timeout_s, self._cut, "read")

    def resume_writing(self) -> None:
        """Stop that deadline: the client reads again."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    @property
    def _is_serving(self) -> bool:
        """True if a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, problem: Problem) -> None:
        """Answer without the application, and take nothing more."""
        answer = error_answer("/", problem)
        fields = {"Connection": "close", "Content-Type": answer.media_type, **answer.headers}
        fields["Content-Length"] = str(len(answer.body))
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + answer.body)
        self.transport.close()

    def _expect_request(self) -> None:
        self._receive_timer = self.loop.call_later(
            self._limits.receive_timeout_s, self._cut, "send a request"
        )

    def _expect_nothing(self) -> None:
        if self._receive_timer is not None:
            self._receive_timer.cancel()
            self._receive_timer = None

    def _cut(self, what: str) -> None:
        """End the connection at once; whoever serves it is told of a disconnect."""
        _LOGGER.info("a connection was cut: its client did not %s in time", what)
        self.transport.abort()


def _limit_unread(transport: asyncio.Transport, seconds: float) -> None:
    """Have the kernel end a connection whose last bytes are never taken, where it can."""
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None and connection is not None and connection.family != socket.AF_UNIX:
        cast(socket.socket, connection).setsockopt(
            socket.IPPROTO_TCP, option, max(1, int(seconds * 1000))
        )


def _bad_request(flaw: str) -> Problem:
    return make_problem(
        400,
        code="bad-request",
        title="The request breaks the rules of HTTP",
        detail=flaw,
        remedy="send it as RFC 9112 says; a proxy in front may have changed it",
    )


def _too_many_connections(limit: int) -> Problem:
    return make_problem(
        503,
        code="too-many-connections",
        title="The server has too many connections",
        detail=f"the limit is {limit} connections at the same time",
        limit=limit,
        remedy="close idle ones, or raise max_connections",
    )
