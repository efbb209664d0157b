"""The server's socket, taken before anything slow so that a second server fails at once."""

from __future__ import annotations

import socket

_BACKLOG = 128


class ServerStartError(Exception):
    """The address cannot be listened on."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ServerStartError if the port is taken or the host is unknown."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise ServerStartError(
            f"cannot listen on {host}: {error}; choose another --host"
        ) from error
    family, kind, protocol, _, address = addresses[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ServerStartError(
            f"cannot listen on {host}:{port}: {error.strerror}; stop the other server or choose"
            " another --port (0 takes a free one)"
        ) from error
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where the socket can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
