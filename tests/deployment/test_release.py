"""The release: one version everywhere, and a workflow whose commands exist."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "deploy/release"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def check_versions(version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(RELEASE / "check_versions.sh"), version],
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_packages_have_one_version() -> None:
    assert check_versions(VERSION).returncode == 0
    other = check_versions("99.0.0")
    assert other.returncode == 1
    named = re.findall(r"^(\S+) has the version", other.stderr, re.MULTILINE)
    assert sorted(named) == [
        "clients/python/pyproject.toml",
        "clients/typescript/package.json",
        "clients/vscode/package.json",
        "pyproject.toml",
    ]


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((RELEASE / "release.yml").read_text())
    return loaded


def test_the_workflow_calls_what_there_is(workflow: dict[str, Any]) -> None:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = "\n".join(step.get("run", "") for step in steps)
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"make (\S+)", commands)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for script in re.findall(r"sh (\S+\.sh)", commands):
        assert (ROOT / script).is_file()


def test_only_those_jobs_that_publish_or_sign_may_ask_for_an_identity(
    workflow: dict[str, Any],
) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["permissions"].get("contents", "read") == "read"
    assert "secrets." not in (RELEASE / "release.yml").read_text()
