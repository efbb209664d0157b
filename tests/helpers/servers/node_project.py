"""Node.js for tests of the TypeScript client: the installed parts, the build, and runs.

A test that needs it is skipped, with the reason, where Node.js or the packages are missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "clients" / "typescript"
MIN_NODE = 20
_RUN_LIMIT_S = 60.0
_COUNT = re.compile(r"^# (pass|fail|cancelled|skipped|todo) (\d+)$", re.MULTILINE)
_PASSED = re.compile(r"^# Subtest: .*\nok .*\n  ---\n(?:  .*\n)*?  \.\.\.\n", re.MULTILINE)


class NodeRunError(AssertionError):
    """A run of Node.js failed; the text is its output."""


@dataclass(frozen=True)
class NodeProject:
    """The TypeScript client with its installed packages."""

    node: str

    @cached_property
    def is_built(self) -> bool:
        """True if `dist` was built from the present sources."""
        digest, stamp = _digest_of_sources(), FOLDER / "dist" / ".sources"
        if not (stamp.is_file() and stamp.read_text() == digest):
            shutil.rmtree(FOLDER / "dist", ignore_errors=True)
            self._run("node_modules/typescript/bin/tsc")
            stamp.write_text(digest)
        return True

    def run(self, *arguments: str, **environment: str) -> str:
        """The standard output of a run in the client's folder."""
        assert self.is_built
        return self._run(*arguments, **environment)

    def run_tests(self, name: str, **environment: str) -> None:
        """Run a file of tests; all must pass and none be skipped."""
        printed = self.run("--test", "--test-reporter=tap", f"test/{name}", **environment)
        counts = {word: int(count) for word, count in _COUNT.findall(printed)}
        assert counts.pop("pass") > 0, printed
        assert set(counts.values()) == {0}, printed

    def _run(self, *arguments: str, **environment: str) -> str:
        run = subprocess.run(
            [self.node, *arguments],
            cwd=FOLDER,
            env=_environment() | environment,
            capture_output=True,
            encoding="utf-8",
            timeout=_RUN_LIMIT_S,
            check=False,
        )
        if run.returncode != 0:
            printed = _without_passed(run.stdout) + run.stderr
            raise NodeRunError(f"{arguments} exited with {run.returncode}\n{printed}")
        return run.stdout


def missing_reason() -> str | None:
    """The reason why the client cannot be tested here; None if it can."""
    node = shutil.which("node")
    if node is None:
        return "no node in the PATH"
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)", asked.stdout)
    if version is None or int(version[1]) < MIN_NODE:
        return f"node {asked.stdout.strip() or 'does not run'}, at least {MIN_NODE} is needed"
    wanted = _versions(FOLDER / "package-lock.json")
    if _versions(FOLDER / "node_modules" / ".package-lock.json") != wanted:
        return f"the packages are not installed; run `npm ci` in {FOLDER}"
    return None


def open_project() -> NodeProject:
    """The project, if nothing is missing."""
    node = shutil.which("node")
    assert node is not None, "asked `missing_reason` before"
    return NodeProject(node)


def _without_passed(printed: str) -> str:
    """The output of tests without those that passed."""
    return _PASSED.sub("", printed)


def _digest_of_sources() -> str:
    """The digest of the names and contents of all files that the build depends on."""
    digest = hashlib.sha256()
    for path in sorted([*FOLDER.glob("src/**/*"), *FOLDER.glob("*.json")]):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _versions(lock: Path) -> dict[str, str]:
    """Versions by package; none without the file."""
    if not lock.is_file():
        return {}
    packages = json.loads(lock.read_text())["packages"]
    return {name: package["version"] for name, package in packages.items() if name}


def _environment() -> dict[str, str]:
    """Our environment, without variables that change the client's address or Node.js."""
    dropped = ("APPLY_", "NODE_", "OPENAI_", "npm_")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
