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


def permissions_of(workflow: dict[str, Any], job: str) -> dict[str, str]:
    found: dict[str, str] = workflow["jobs"][job]["permissions"]
    return found


def actions_of(job: dict[str, Any]) -> list[str]:
    return [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]


def test_each_job_may_do_what_it_is_for_and_no_more(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    allowed = {
        "build": {"contents": "read"},
        "attest": {"id-token": "write", "attestations": "write"},
        "npm": {"id-token": "write"},
        "pypi": {"id-token": "write"},
    }
    assert {job: permissions_of(workflow, job) for job in workflow["jobs"]} == allowed
    assert "secrets." not in (RELEASE / "release.yml").read_text()


def test_a_job_that_signs_or_publishes_runs_nothing_of_the_repository(
    workflow: dict[str, Any],
) -> None:
    for name, job in workflow["jobs"].items():
        if "id-token" in permissions_of(workflow, name):
            assert "actions/checkout" not in actions_of(job), name
            commands = " ".join(step.get("run", "") for step in job["steps"])
            assert not re.search(r"make|\bsh\b|python", commands), name


def test_all_files_are_attested_before_one_is_published(workflow: dict[str, Any]) -> None:
    jobs = workflow["jobs"]
    needs = {name: job.get("needs") for name, job in jobs.items()}
    assert needs == {"build": None, "attest": "build", "npm": "attest", "pypi": "npm"}
    steps = {step["uses"].partition("@")[0]: step for step in jobs["attest"]["steps"]}
    assert steps["actions/attest-build-provenance"]["with"] == {"subject-path": "dist/*"}
    bill = steps["actions/attest-sbom"]["with"]
    made = next(
        step["run"] for step in jobs["build"]["steps"] if "cyclonedx" in step.get("run", "")
    )
    assert f"--output-file {bill['sbom-path']}" in made
    assert "$(ls dist/apply_service-*.whl)" in made
    assert bill["subject-path"] == "dist/apply_service-*.whl"
