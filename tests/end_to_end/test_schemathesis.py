"""A real server holds to its OpenAPI document, whatever schemathesis sends it.

The quick run is a part of every test run; `pytest -m slow tests/end_to_end/test_schemathesis.py`
takes some minutes for more than 5,000 examples, those of the borders of each limit among them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from server_thread import serving

from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from apply_service.service import ApplyService

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    settings = Settings(
        model=str(tiny_model_dir), profile="embedded", threads=1, kv_memory=8 << 20, device="cpu"
    )
    service = ApplyService(
        partial(load_served_model, settings, report=lambda _stage: None),
        model_name=tiny_model_dir.name,
        limits=PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64),
        default_deadline_s=20.0,
        drain_s=5.0,
    )
    with serving(service) as url:
        yield url


def run_schemathesis(url: str, folder: Path, *flags: str) -> dict[str, Any]:
    """The report of a run; what was sent and what was wrong with the answer if it failed."""
    report = folder / "report.json"
    program = [sys.executable, "-m", "schemathesis.cli"]
    finished = subprocess.run(
        [
            *program,
            *("--config-file", str(TESTS / "schemathesis.toml")),
            *("run", f"{url}/schema/openapi.json", "--no-color"),
            *("--report-json-path", str(report), *flags),
        ],
        cwd=folder,  # it leaves a cache where it runs
        env={**os.environ, "PYTHONPATH": str(TESTS / "helpers" / "servers")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    read: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    assert read["complete"]
    assert read["operations"]["tested"] == read["operations"]["total"]
    assert read["failures"] == read["errors"] == []
    return read


def test_three_hundred_examples(url: str, tmp_path: Path) -> None:
    report = run_schemathesis(url, tmp_path, "--phases", "fuzzing", "--max-examples", "30")
    assert report["test_cases"]["generated"] >= 300


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_thousand_examples(url: str, tmp_path: Path) -> None:
    report = run_schemathesis(url, tmp_path, "--max-examples", "400")
    assert report["test_cases"]["generated"] >= 5000
    assert report["phases"]["coverage"]["status"] == "success"
