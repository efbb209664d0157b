"""`sampling.acceptance`: refused unless the server allows it, never bound, and said in answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving

EDIT = {
    "path": "a.py",
    "original": "a = 1\nb = 2\nc = 3\n",
    "update": "# ... existing code ...\nb = 5\n# ... existing code ...\n",
    "constraint": "none",
    "sampling": {"acceptance": "typical"},
}


def serve(oracle: OracleService) -> Iterator[str]:
    oracle.will_answer(["a = 1", "b = 5", "c = 3"])
    with serving(oracle.service) as address:
        yield address


@pytest.fixture(scope="module")
def refusing_url(tiny_model_dir: Path) -> Iterator[str]:
    yield from serve(OracleService(tiny_model_dir))


@pytest.fixture(scope="module")
def allowing_url(tiny_model_dir: Path) -> Iterator[str]:
    yield from serve(OracleService(tiny_model_dir, allows_lossy=True))


def post(url: str, **changes: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/apply", json={**EDIT, **changes}, timeout=60)


def test_a_server_refuses_unless_it_allows(refusing_url: str) -> None:
    answer = post(refusing_url)
    assert answer.status_code == 400
    assert "acceptance 'typical'" in answer.json()["detail"]
    assert "--lossy-acceptance allowed" in answer.text
    exact = post(refusing_url, sampling={"acceptance": "exact"})
    assert exact.json()["speculation"]["acceptance"] == "exact"


def test_the_answer_repeats_the_word(allowing_url: str) -> None:
    answer = post(allowing_url).json()
    assert (answer["merged"], answer["source"]) == ("a = 1\nb = 5\nc = 3\n", "model")
    assert answer["speculation"]["acceptance"] == "typical"


def test_bound_answers_refuse_it(allowing_url: str) -> None:
    answer = post(allowing_url, constraint="merge")
    assert answer.status_code == 400
    assert "send the constraint none" in answer.text


def test_an_unknown_word_is_refused(allowing_url: str) -> None:
    answer = post(allowing_url, sampling={"acceptance": "sloppy"})
    assert answer.status_code == 400
    assert "sloppy" in answer.text
