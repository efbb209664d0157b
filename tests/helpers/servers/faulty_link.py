"""A TCP link to a real server that loses, delays or changes bytes as prescribed."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_POLL_S = 0.02
_PIECE_BYTES = 1 << 14


class LinkBrokenError(Exception):
    """The link is broken: both ends of this connection are closed."""


@dataclass
class Connection:
    """The traffic of one connection since its client last spoke."""

    num_reply_bytes: int = 0
    num_asked_bytes: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> None:
        """Let time pass; LinkBrokenError if the link ends meanwhile."""
        if self.is_over.wait(seconds):
            raise LinkBrokenError


Change = Callable[[Connection, bytes], bytes]
"""What arrives of a piece; it may wait, or raise LinkBrokenError."""


class FaultyLink:
    """Carries connections to a port of the loopback address.

    `on_reply` and `on_request` may be exchanged at any time. While `is_cut`, connections are closed
    as they come.
    """

    def __init__(
        self, target_port: int, *, on_reply: Change | None = None, on_request: Change | None = None
    ) -> None:
        self.on_reply = on_reply or unchanged
        self.on_request = on_request or unchanged
        self.is_cut = False
        self._target = ("127.0.0.1", target_port)
        self._is_over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """The URL of the Redis behind the link."""
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """End every connection."""
        self._is_over.set()
        for thread in list(self._threads):
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_over.is_set():
            if not select.select([self._listener], [], [], _POLL_S)[0]:
                continue
            client, _ = self._listener.accept()
            try:
                if self.is_cut:
                    raise ConnectionRefusedError
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            connection = Connection(is_over=self._is_over)
            ways = ((client, server, self._request), (server, client, self._reply))
            threads = [
                threading.Thread(target=self._carry, args=(connection, *way)) for way in ways
            ]
            self._threads += threads
            for thread in threads:
                thread.start()

    def _carry(
        self, connection: Connection, source: socket.socket, sink: socket.socket, change: Change
    ) -> None:
        try:
            while not (self._is_over.is_set() or self.is_cut):
                if not select.select([source], [], [], _POLL_S)[0]:
                    continue
                piece = source.recv(_PIECE_BYTES)
                if not piece:
                    break
                sink.sendall(change(connection, piece))
        except (OSError, ValueError, LinkBrokenError):
            pass  # ValueError: the other thread has closed the socket
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _request(self, connection: Connection, piece: bytes) -> bytes:
        connection.num_reply_bytes = 0
        connection.num_asked_bytes += len(piece)
        return self.on_request(connection, piece)

    def _reply(self, connection: Connection, piece: bytes) -> bytes:
        connection.num_asked_bytes = 0
        connection.num_reply_bytes += len(piece)
        return self.on_reply(connection, piece)


def unchanged(_connection: Connection, piece: bytes) -> bytes:
    return piece


def stalling_after(num_bytes: int) -> Change:
    """Never deliver the bytes of an answer (or request) beyond this number."""

    def change(connection: Connection, piece: bytes) -> bytes:
        if max(connection.num_reply_bytes, connection.num_asked_bytes) > num_bytes:
            connection.wait(3600)
        return piece

    return change


def dropping_after(num_bytes: int) -> Change:
    """Close the connection within an answer that is longer."""

    def change(connection: Connection, piece: bytes) -> bytes:
        if connection.num_reply_bytes > num_bytes:
            raise LinkBrokenError
        return piece

    return change


def delayed_by(seconds: float) -> Change:
    """Deliver every piece later by this time."""

    def change(connection: Connection, piece: bytes) -> bytes:
        connection.wait(seconds)
        return piece

    return change


def flipping_bits(connection: Connection, piece: bytes) -> bytes:
    """Change values on their way, and nothing else."""
    if connection.num_reply_bytes <= _PIECE_BYTES:
        return piece
    middle = len(piece) // 2
    return piece[:middle] + bytes([piece[middle] ^ 16]) + piece[middle + 1 :]


@contextmanager
def faulty_link(
    target_port: int, *, on_reply: Change | None = None, on_request: Change | None = None
) -> Iterator[FaultyLink]:
    link = FaultyLink(target_port, on_reply=on_reply, on_request=on_request)
    try:
        yield link
    finally:
        link.close()
