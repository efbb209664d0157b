"""Runs tests of Node.js that show something in Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

REMEDY = "run `make test-editors`, which installs it"


def run_browser_tests(
    *arguments: str | Path, folder: Path, limit_s: float, **environment: str
) -> None:
    """Run them in a folder; all must pass, and what is missing for them fails with its remedy."""
    node, chromium = shutil.which("node"), shutil.which("chromium")
    assert node is not None, "Node.js is missing"
    assert chromium is not None, f"Debian's package chromium is missing; {REMEDY}"
    done = subprocess.run(
        [node, "--test", "--test-concurrency=1", *arguments],
        cwd=folder,
        env={**os.environ, "CHROMIUM": chromium, **environment},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# skipped 0" in done.stdout
