"""A server that reads Redis commands and gives prescribed answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

_POLL_S = 0.05

Answer = Callable[[list[bytes]], bytes]
"""The reply to a command."""

GREETING = b"*2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"


@contextmanager
def redis_impostor(answer: Answer) -> Iterator[str]:
    """Start a listening server; give its URL. Unread or endless replies block nobody."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(_POLL_S)
    is_over = threading.Event()
    clients: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def talk(client: socket.socket) -> None:
        try:
            with client, client.makefile("rb") as stream:
                while command := _read_command(stream):
                    client.sendall(answer(command))
        except (OSError, ValueError):
            return

    def accept() -> None:
        while not is_over.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            client.settimeout(None)
            clients.append(client)
            threads.append(threading.Thread(target=talk, args=(client,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_over.set()
        accepting.join()
        for client in clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in threads:
            thread.join()
        listener.close()


def always(text: bytes) -> Answer:
    """Give the same reply to everything."""
    return lambda _command: text


def greeting_with(text: bytes, then: bytes = b":0\r\n") -> Answer:
    """Give one reply to HELLO and another to all that follows."""
    return lambda command: text if command[0] == b"HELLO" else then


def _read_command(stream: BinaryIO) -> list[bytes]:
    """The arguments of the next command; empty at the end."""
    line = stream.readline()
    if not line.startswith(b"*"):
        return []
    return [stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
