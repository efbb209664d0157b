"""A server on a plain socket that treats each connection as prescribed, right or wrong."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

WAIT_S = 20.0


@dataclass(frozen=True)
class Reply:
    """The reply to one request: bytes as they are, then an orderly end, a reset, or silence."""

    content: bytes = b""
    is_reset: bool = False
    is_silent: bool = False


def reply(
    status: int, body: bytes, *, headers: dict[str, str] | None = None, is_reset: bool = False
) -> Reply:
    """An answer with its length; a reset cuts it off behind half of its body."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    sent = body[: len(body) // 2] if is_reset else body
    return Reply("\r\n".join(lines).encode() + b"\r\n\r\n" + sent, is_reset=is_reset)


def stream_reply(body: bytes, *, is_reset: bool = False) -> Reply:
    """A stream of events that ends with the connection."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return Reply(head + body, is_reset=is_reset)


@dataclass
class MisbehavingServer:
    """`script` has the replies in order; the last one is repeated.

    `requests` are the received requests.
    """

    url: str
    script: list[Reply] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)

    def will(self, *replies: Reply) -> None:
        self.script = list(replies)
        self.requests.clear()

    def next_reply(self) -> Reply:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@contextmanager
def misbehaving_server() -> Iterator[MisbehavingServer]:
    """Serve one connection after the other, one request each."""
    is_over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    server = MisbehavingServer(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                if is_over.is_set():
                    return
                connection.settimeout(WAIT_S)
                server.requests.append(_read_request(connection))
                answer = server.next_reply()
                connection.sendall(answer.content)
                if answer.is_silent:
                    connection.recv(1)  # until the client gives up
                if answer.is_reset:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        is_over.set()
        socket.create_connection(listener.getsockname(), WAIT_S).close()
        thread.join(WAIT_S)
        listener.close()
        assert not thread.is_alive()


def _read_request(connection: socket.socket) -> bytes:
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(65536)
    head, _, body = content.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
