"""The examples of the TypeScript client's README, run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_project import FOLDER, NodeProject
from oracle_service import OracleService
from server_thread import serving

README = (FOLDER / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```js\n(.*?)```\n\n```text\n(.*?)```\n", re.DOTALL)
EXAMPLES = EXAMPLE.findall(README)
DEFAULT_URL = "http://127.0.0.1:8722"


@pytest.fixture(scope="module")
def constrained_url(tiny_model_dir: Path) -> Iterator[str]:
    """A service that is held to valid merges as that of the embedded model is."""
    oracle = OracleService(tiny_model_dir)
    oracle.profile.default_constraint = "merge"
    with serving(oracle.service) as url:
        yield url


def test_every_example_says_what_it_prints() -> None:
    assert len(EXAMPLES) == README.count("```js\n") > 0


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_prints_what_the_readme_says(
    node_project: NodeProject, constrained_url: str, code: str, printed: str
) -> None:
    code = code.replace(DEFAULT_URL, constrained_url)
    environment = {"APPLY_SERVICE_URL": constrained_url}
    assert node_project.run("--input-type=module", "--eval", code, **environment) == printed
