"""Ways to an engine at the other end of a socket: one of our own, or a shared one. No torch."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batching.errors import EngineLostError
from batching.remote.frame_socket import ConnectionLostError, FrameSocket
from batching.remote.frames import Configure, EngineFrame

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
        started = cls(*spawn(command, EngineFrame))
        with suppress(ConnectionLostError):  # whoever waits for its greeting is told how it ended
            started.connection.send(Configure(settings))
        return started

    def kill(self) -> None:
        """End the process at once, and with it the connection."""
        self.process.kill()
        self.connection.close()

    def close(self) -> str:
        """End the connection, and with it the process."""
        self.connection.close()
        return how_it_ended(self.process)


@dataclass(frozen=True)
class SharedEngine:
    """A connection to an engine that is not ours: it outlives us, and we may outlive it."""

    connection: FrameSocket[EngineFrame]

    @classmethod
    def connect(cls, path: Path) -> SharedEngine:
        """Connect to the engine that listens at `path`. Raises EngineLostError if none does."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            raise EngineLostError(
                f"no engine listens at {path} ({error.strerror}); start one with `apply-service"
                f" engine --engine-socket {path}`"
            ) from error
        return cls(FrameSocket(connection, EngineFrame))

    def kill(self) -> None:
        """The process is not ours; only the connection ends."""
        self.connection.close()

    def close(self) -> str:
        """End the connection; the engine withdraws what is unfinished."""
        self.connection.close()
        return "closed the connection"


def spawn(
    command: Sequence[str], incoming: Any
) -> tuple[subprocess.Popen[bytes], FrameSocket[Any]]:
    """Run `command` with the number of its end of a socket behind it; the process and our end.

    incoming: the type of the frames that it sends
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([*command, str(theirs.fileno())], pass_fds=(theirs.fileno(),))
    return process, FrameSocket(ours, incoming)


def how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Wait for a process whose connection has ended, or kill it; in words."""
    try:
        code = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    return f"ended by signal {-code}" if code < 0 else f"ended with exit status {code}"


def python_command(module: str) -> list[str]:
    """A command that runs a module with this interpreter."""
    return [sys.executable, "-m", module]
