"""Listens at a Unix socket for several clients of one engine."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from batching.errors import EngineError
from batching.remote.frame_socket import FrameSocket
from batching.remote.frames import ClientFrame

if TYPE_CHECKING:  # it brings torch, and a socket is taken before anything slow
    from batching.engine import Engine

_BACKLOG = 64
_POLL_S = 0.1


class EngineSocketError(EngineError):
    """A path at which no engine can listen."""


def listen_at(path: Path) -> socket.socket:
    """A socket at `path` that only this user may connect to; what a dead engine left goes.

    Raises EngineSocketError.
    """
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        mask = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(mask)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise EngineSocketError(
            f"cannot listen at {path}: {error.strerror or error}; name a path of at most 100 bytes"
            " in a folder of yours"
        ) from error
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise EngineSocketError(f"{path} is a file and no socket; name another path")
    with socket.socket(socket.AF_UNIX) as trial:
        if trial.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()
            return
    raise EngineSocketError(f"an engine listens at {path} already; stop it or name another path")


def serve_shared(
    listener: socket.socket, engine: Engine, *, until: threading.Event, drain_s: float = 0.0
) -> None:
    """Serve whoever connects until `until` is set, then end what runs within `drain_s` seconds.

    Stops the engine and removes the socket.
    """
    from batching.remote.engine_server import EngineServer

    server = EngineServer(engine)
    path = Path(listener.getsockname())
    listener.settimeout(_POLL_S)
    try:
        while not (until.is_set() or engine.is_lost):
            with suppress(TimeoutError):
                client, _ = listener.accept()
                client.settimeout(None)
                threading.Thread(
                    target=server.serve,
                    args=(FrameSocket(client, ClientFrame),),
                    name="engine-client",
                    daemon=True,
                ).start()
        engine.refuse_new()
        deadline = time.monotonic() + drain_s
        while engine.num_live and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    finally:
        listener.close()
        path.unlink(missing_ok=True)
        engine.stop()
        server.close()
