"""Fixtures of the tests that Node.js runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from node_project import NodeProject, missing_reason, open_project
from oracle_service import OracleService
from server_thread import serving

MERGED = """import sys


def greet(name, mark):
    print(name + mark)


def main():
    greet(sys.argv[1])
"""


@pytest.fixture(scope="session")
def node_project() -> NodeProject:
    """The TypeScript client, built; skips where Node.js or its packages are missing."""
    reason = missing_reason()
    if reason is not None:
        pytest.skip(reason)
    project = open_project()
    assert project.is_built
    return project


@pytest.fixture(scope="module")
def service_url(tiny_model_dir: Path) -> Iterator[str]:
    """A service whose model writes the merge that the tests ask for."""
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(MERGED.splitlines())
    with serving(oracle.service) as url:
        yield url
