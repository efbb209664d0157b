"""The demo as `make demo` runs it, with every host but this one out of reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Loaded by every Python process at its start: sockets reach loopback addresses only.
LOOPBACK_ONLY = """
import socket

LOCAL = ("127.", "::1", "localhost", "0.0.0.0")


def refuse(address):
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(host, str) and not host.startswith(LOCAL):
        raise SystemExit(f"a connection to {host} was tried")


def guard(method):
    def guarded(self, address, *rest):
        if self.family != socket.AF_UNIX:
            refuse(address)
        return method(self, address, *rest)

    return guarded


def guarded_getaddrinfo(host, *rest, **options):
    if host is not None:
        refuse((host,))
    return getaddrinfo(host, *rest, **options)


getaddrinfo = socket.getaddrinfo
socket.getaddrinfo = guarded_getaddrinfo
for name in ("connect", "connect_ex", "sendto"):
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


def test_the_guard_refuses_other_hosts(tmp_path: Path) -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    assert "192.0.2.1 was tried" in run_guarded(tmp_path, "-c", code).stderr


def test_the_demo_merges_the_example_without_a_network(tmp_path: Path) -> None:
    demo = run_guarded(tmp_path, "-m", "apply_service.demo", "--off-tokens", "32")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "applied, no findings; equal to the expected merge" in demo.stdout
    assert "tokens per target pass" in demo.stdout
    assert "times as fast" in demo.stdout
