"""The extension for VS Code: its types, and its tests at a live server, in a stand-in for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from serve_process import ROOT, START_LIMIT_S, serve_process, wait_until_ready

EXTENSION = ROOT / "clients/vscode"
NPM = shutil.which("npm")
LIMIT_S = 100.0

pytestmark = [
    pytest.mark.editors,
    pytest.mark.timeout(START_LIMIT_S + LIMIT_S + 60),
    pytest.mark.skipif(
        NPM is None or not (EXTENSION / "node_modules").exists(),
        reason="Node.js or the extension's packages are missing; `make test-editors` installs them",
    ),
]


def run_npm(script: str, environment: dict[str, str]) -> None:
    assert NPM is not None
    done = subprocess.run(
        [NPM, "run", script],
        cwd=EXTENSION,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_extension_applies_updates(tmp_path: Path) -> None:
    with serve_process("--port", "0", "--use-model", "never") as (_server, url):
        wait_until_ready(url)
        run_npm("test", {"APPLY_SERVICE_URL": url, "HOME": str(tmp_path)})
