"""Starts an engine's process at the other end of a socket, and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from batching.engine import Engine
from batching.errors import EngineError
from batching.remote.engine_server import EngineServer
from batching.remote.frame_socket import ConnectionLostError, FrameSocket
from batching.remote.frames import ClientFrame, Configure, EngineFrame, StartFailed, kind_of

# A process that does not end by itself after its connection has ended is killed.
_END_S = 10.0


@dataclass(frozen=True)
class OwnedProcess:
    """A process with an engine that is ours; it ends with us."""

    process: subprocess.Popen[bytes]
    connection: FrameSocket[EngineFrame]

    @classmethod
    def start(cls, command: Sequence[str], settings: bytes) -> OwnedProcess:
        """Run `command` with the number of its end of the socket behind it, and configure it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [*command, str(theirs.fileno())], pass_fds=(theirs.fileno(),)
            )
        started = cls(process, FrameSocket(ours, EngineFrame))
        started.connection.send(Configure(settings))
        return started

    def close(self) -> str:
        """End the connection, and with it the process."""
        self.connection.close()
        try:
            code = self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return f"ended by signal {-code}" if code < 0 else f"ended with exit status {code}"


def serve_engine(fd: int, load: Callable[[bytes], Engine]) -> int:
    """Serve the engine that `load` makes of its settings; the exit status.

    If the other end goes, the process ends, even while it loads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all processes at once
    connection: FrameSocket[ClientFrame] = FrameSocket(socket.socket(fileno=fd), ClientFrame)
    is_loaded = threading.Event()
    try:
        frame = connection.receive()
    except ConnectionLostError:
        return 1
    assert isinstance(frame, Configure), "settings come first"
    threading.Thread(target=_watch, args=(fd, is_loaded), daemon=True).start()
    try:
        engine = load(frame.settings)
    except EngineError as error:
        return _give_up(connection, kind_of(error), str(error))
    except Exception as error:  # the other end has nobody else to ask
        return _give_up(connection, "", f"{type(error).__name__}: {error}")
    is_loaded.set()
    try:
        EngineServer(engine).serve(connection)
    except ConnectionLostError:
        pass
    finally:
        engine.stop()
    return 0


def _give_up(connection: FrameSocket[ClientFrame], kind: str, message: str) -> int:
    with suppress(ConnectionLostError):
        connection.send(StartFailed(kind, message))
    return 1


def _watch(fd: int, is_loaded: threading.Event) -> None:
    """End the process if the other end goes while the model is being loaded."""
    with socket.socket(fileno=os.dup(fd)) as watched:
        while not is_loaded.wait(0.5):
            try:
                if not watched.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    os._exit(1)
            except BlockingIOError:
                continue
            except OSError:
                os._exit(1)


def python_command(module: str) -> list[str]:
    """A command that runs a module with this interpreter."""
    return [sys.executable, "-m", module]
