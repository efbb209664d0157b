"""NGINX or HAProxy with the configuration of `deploy/balancers`, before servers of a test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from redis_process import free_port

FOLDER = Path(__file__).parents[3] / "deploy" / "balancers"
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}
_PLACES = ("127.0.0.1:8801", "127.0.0.1:8802")
_FRONT = "127.0.0.1:8700"
_WAIT_S = 20.0


def missing_reason(kind: str) -> str | None:
    """The reason why a balancer cannot run here; None if it can."""
    return None if _find(kind) else f"no {kind} in the PATH"


@contextmanager
def balancer(kind: str, urls: Sequence[str]) -> Iterator[str]:
    """The address of a balancer before two servers; it ends with the block."""
    front = f"127.0.0.1:{free_port()}"
    text = (FOLDER / FILES[kind]).read_text().replace(_FRONT, front)
    for place, url in zip(_PLACES, urls, strict=True):
        assert place in text
        text = text.replace(place, urlsplit(url).netloc)
    with tempfile.TemporaryDirectory(prefix="balancer-") as folder:
        path = Path(folder) / FILES[kind]
        path.write_text(text)
        process = subprocess.Popen(
            _command(kind, path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            _wait_for(front, process)
            yield f"http://{front}"
        finally:
            process.terminate()
            process.communicate(timeout=_WAIT_S)


def _command(kind: str, path: Path) -> list[str]:
    program = _find(kind)
    assert program is not None
    if kind == "haproxy":
        return [program, "-db", "-f", str(path)]
    own = f"daemon off; pid {path.parent}/pid; error_log stderr;"
    return [program, "-p", str(path.parent), "-c", str(path), "-g", own]


def _find(kind: str) -> str | None:
    return shutil.which(kind, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + _WAIT_S
    while True:
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read().decode())
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens on {address}"
            time.sleep(0.05)
