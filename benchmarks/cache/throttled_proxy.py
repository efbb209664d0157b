"""A TCP proxy that lets only so many bytes a second through: a slow link to a fast server."""

from __future__ import annotations

import select
import socket
import threading
import time
from types import TracebackType
from typing import Self

# A fast link moves more at a time, or this process would be slower than it.
_MIN_PIECE_BYTES = 1 << 14
_PIECE_S = 0.001
_POLL_S = 0.05


class ThrottledProxy:
    """Listens on a free port of the loopback address while the block lasts.

    All connections share `bytes_per_s` in each direction. `delay_s` is added before each piece.
    """

    def __init__(
        self, target: tuple[str, int], *, bytes_per_s: float, delay_s: float = 0.0
    ) -> None:
        self.bytes_per_s = bytes_per_s
        self.delay_s = delay_s
        self._target = target
        self._piece_bytes = max(_MIN_PIECE_BYTES, int(bytes_per_s * _PIECE_S))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_closing = threading.Event()
        self._lock = threading.Lock()
        self._free_at = {"up": 0.0, "down": 0.0}
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_closing.set()
        for thread in list(self._threads):
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closing.is_set():
            if not select.select([self._listener], [], [], _POLL_S)[0]:
                continue
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            thread = threading.Thread(target=self._relay, args=(client, server), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        """Both directions of one connection, until either side ends it."""
        other = {client: ("up", server), server: ("down", client)}
        with client, server:
            try:
                while not self._is_closing.is_set():
                    for source in select.select([client, server], [], [], _POLL_S)[0]:
                        direction, sink = other[source]
                        piece = source.recv(self._piece_bytes)
                        if not piece:
                            return
                        self._wait(direction, len(piece))
                        sink.sendall(piece)
            except OSError:
                return

    def _wait(self, direction: str, num_bytes: int) -> None:
        """Sleep until the link has room for so many bytes."""
        with self._lock:
            start = max(self._free_at[direction], time.monotonic())
            self._free_at[direction] = start + num_bytes / self.bytes_per_s
            until = self._free_at[direction] + self.delay_s
        self._is_closing.wait(max(0.0, until - time.monotonic()))
