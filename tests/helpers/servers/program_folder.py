"""The programs of this tree as an installation would make them, and a runner of shell scripts."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PROGRAMS = {"apply-client": "apply_client", "apply-service": "apply_service"}


def write_programs(folder: Path) -> None:
    """Make a folder with `apply-client` and `apply-service`."""
    folder.mkdir(parents=True)
    places = shlex.quote(os.pathsep.join((str(ROOT), str(ROOT / "clients" / "python"))))
    for name, package in _PROGRAMS.items():
        program = folder / name
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH={places} exec {sys.executable} -m {package} "$@"\n'
        )
        program.chmod(0o755)


def run_shell(
    script: str, *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder and return the result, also of a failure."""
    return subprocess.run(
        ["sh", "-c", script, "script", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
