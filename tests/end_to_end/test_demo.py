"""The demo as `make demo` runs it, with every host but this one out of reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Loaded by every Python process at its start: other hosts are out of reach, and attempts are noted.
LOOPBACK_ONLY = """
import pathlib
import socket

ATTEMPTS = pathlib.Path(__file__).with_name("attempts")
getaddrinfo = socket.getaddrinfo


def check_is_local(host):
    if host is not None and not str(host).startswith(("127.", "::1", "localhost")):
        with ATTEMPTS.open("a") as file:
            print(host, file=file)
        raise OSError(f"{host} is out of reach")


def guard(connect):
    def guarded(self, address):
        if self.family != socket.AF_UNIX:
            check_is_local(address[0])
        return connect(self, address)

    return guarded


def guarded_getaddrinfo(host, *rest, **options):
    check_is_local(host)
    return getaddrinfo(host, *rest, **options)


socket.getaddrinfo = guarded_getaddrinfo
for name in ("connect", "connect_ex"):
    setattr(socket.socket, name, guard(getattr(socket.socket, name)))
"""


def run_guarded(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(LOOPBACK_ONLY)
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def attempts(folder: Path) -> list[str]:
    path = folder / "attempts"
    return path.read_text().split() if path.exists() else []


def test_the_guard_notes_and_refuses_other_hosts(tmp_path: Path) -> None:
    code = "import socket; socket.socket().connect(('192.0.2.1', 80))"
    assert "192.0.2.1 is out of reach" in run_guarded(tmp_path, "-c", code).stderr
    assert attempts(tmp_path) == ["192.0.2.1"]


def test_the_demo_merges_the_example_without_a_network(tmp_path: Path) -> None:
    demo = run_guarded(tmp_path, "-m", "apply_service.cli.demo", "--off-tokens", "12")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "applied, no findings; equal to the expected merge" in demo.stdout
    assert "tokens per target pass" in demo.stdout
    assert "times as fast" in demo.stdout
    assert attempts(tmp_path) == []
