"""The server's socket and the files that its connections need."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging, resource
from apply_service.http.server.listener import make_room_for
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
make_room_for({num_connections})
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limits_after(soft: int, hard: int, num_connections: int) -> tuple[int, int, str]:
    """The limits of a process that made room, and what it wrote."""
    program = PROGRAM.format(soft=soft, hard=hard, num_connections=num_connections)
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    now, most = map(int, finished.stdout.split())
    return now, most, finished.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such limit")
def test_connections_have_files() -> None:
    now, most, warning = limits_after(200, 900, 500)
    assert (now > 500, most, warning) == (True, 900, "")
    assert limits_after(800, 900, 100) == (800, 900, "")
    now, most, warning = limits_after(200, 900, 2000)
    assert (now, most) == (900, 900)
    assert "2000 connections" in warning
    assert "max_connections" in warning
