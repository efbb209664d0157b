"""The extension in VS Code itself, by code-server and Debian's Chromium, at a live server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from browser_tests import REMEDY, run_browser_tests
from serve_process import ROOT, serve_process, wait_until_ready

EXTENSION = ROOT / "clients/vscode"
CODE_SERVER = ROOT / "build/editors/code-server"
TESTS = Path(__file__).with_name("in_vscode.test.mjs")
LIMIT_S = 400.0
SETTINGS = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "extensions.ignoreRecommendations": True,
}

pytestmark = [pytest.mark.editors, pytest.mark.timeout(LIMIT_S + 100)]


def install_extension(folder: Path) -> None:
    """Put the extension where code-server looks for it."""
    place = folder / "apply-service.apply-service-0.1.0"
    place.mkdir(parents=True)
    shutil.copy(EXTENSION / "package.json", place)
    npm = shutil.which("npm")
    assert npm is not None, "npm is missing"
    subprocess.run([npm, "run", "--silent", "build"], cwd=EXTENSION, check=True, timeout=LIMIT_S)
    shutil.copytree(EXTENSION / "dist", place / "dist")


@contextmanager
def vscode(folder: Path, service_url: str) -> Iterator[str]:
    """VS Code with the extension, for browsers; its address."""
    for place, settings in (
        ("User", SETTINGS),
        ("Machine", {"applyService.url": service_url}),
    ):
        (folder / "data" / place).mkdir(parents=True)
        (folder / "data" / place / "settings.json").write_text(json.dumps(settings))
    install_extension(folder / "extensions")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        *(CODE_SERVER / "venv/bin/node", CODE_SERVER / "node_modules/code-server"),
        *("--auth", "none", "--bind-addr", address, "--disable-telemetry"),
        *("--user-data-dir", folder / "data", "--extensions-dir", folder / "extensions"),
        "--disable-update-check",
    ]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(folder)},
            start_new_session=True,  # its node is started by another program, and ends with it
        ) as process,
    ):
        try:
            deadline = time.monotonic() + LIMIT_S
            while not _answers(f"http://{address}/healthz"):
                assert time.monotonic() < deadline, (folder / "log").read_text()
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield f"http://{address}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


def test_the_extension_in_vscode(tmp_path: Path) -> None:
    assert CODE_SERVER.is_dir(), f"code-server is missing; {REMEDY}"
    project = tmp_path / "project"
    project.mkdir()
    with serve_process("--port", "0", "--use-model", "never") as (_server, url):
        wait_until_ready(url)
        with vscode(tmp_path, url) as address:
            run_browser_tests(
                TESTS,
                folder=EXTENSION,
                limit_s=LIMIT_S,
                EDITOR_URL=address,
                PROJECT=str(project),
            )
