"""The TypeScript client under Node.js: its parts, bad servers, and the real service."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_project import NodeProject
from oracle_service import OracleService
from server_thread import serving


@pytest.mark.parametrize("name", ["units.test.mjs", "faults.test.mjs"])
def test_without_a_service(node_project: NodeProject, name: str) -> None:
    node_project.run_tests(name)


def test_against_the_real_service(
    node_project: NodeProject, service_url: str, tiny_model_dir: Path
) -> None:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(["this is no merge"])
    with serving(oracle.service) as nonsense_url:
        node_project.run_tests(
            "service.test.mjs", SERVICE_URL=service_url, NONSENSE_URL=nonsense_url
        )


def test_openais_package_with_another_base_url(node_project: NodeProject, service_url: str) -> None:
    node_project.run_tests("openai_package.test.mjs", SERVICE_URL=service_url)
