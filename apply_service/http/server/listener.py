"""The server's socket, taken before anything slow so that a second server fails at once."""

from __future__ import annotations

import logging
import socket
import sys

_LOGGER = logging.getLogger(__name__)

_BACKLOG = 128
# Files that a server has open beside its connections: logs, models, processes, a Redis.
_NUM_OTHER_FILES = 256


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


def make_room_for(num_connections: int) -> None:
    """Raise the limit of open files for this number of connections, as far as the system allows.

    At the limit connections are not even refused, and nothing else can be opened.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = num_connections + _NUM_OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    possible = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    if possible < needed:
        _LOGGER.warning(
            "%d connections need %d open files, the limit is %d; raise it (ulimit -Hn), or lower"
            " max_connections",
            num_connections,
            needed,
            possible,
        )


def url_of(listener: socket.socket) -> str:
    """The URL of the socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
