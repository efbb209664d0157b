"""The server that real clients call, and the table of what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from client_table import Row, table_of
from real_clients import RealClient, Server
from serve_process import ROOT, serve_process, wait_until_ready


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as its operator starts it, with the embedded model and a key."""
    keys_file = tmp_path_factory.mktemp("keys") / "keys.json"
    command = [sys.executable, "-m", "apply_service", "key", "create", "--name", "clients"]
    made = subprocess.run(
        [*command, "--keys-file", str(keys_file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    with serve_process("--port", "0", "--keys-file", str(keys_file)) as (_server, url):
        wait_until_ready(url)
        yield Server(url, made.stdout.strip())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a client's files; the one above it is the home of the client."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def row(client: RealClient, record_property: Callable[[str, object], None]) -> Row:
    """The client's row of the table; a client that is not installed is skipped."""
    version = client.version()
    if version is None:
        pytest.skip(f"{client.package} is not installed; `make test-clients` does it")
    assert version == client.pinned_version()
    return Row(client.name, version, record_property)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what every client made of every edit."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    table = table_of(reports)
    if table:
        terminalreporter.section("real clients")
        terminalreporter.write_line(table)
