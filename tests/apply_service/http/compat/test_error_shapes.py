"""Errors speak of the edit in the words of the address that was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving
from tagged_edit import UNSURE_ORIGINAL, UNSURE_UPDATE, fields, tagged

ORIGINAL = "import sys\n\n\ndef name(path):\n    return path\n\n\nprint(name(sys.argv[1]))\n"
UPDATE = "# ... existing code ...\ndef name(path):\n    path = path.lower()\n    return path\n"


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[httpx.Client]:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def chat_error(client: httpx.Client, original: str, update: str) -> dict[str, Any]:
    messages = tagged(original, update)
    answer = client.post("/v1/chat/completions", json={"model": "auto", "messages": messages})
    assert answer.status_code >= 400
    error: dict[str, Any] = answer.json()["error"]
    return error


@pytest.mark.parametrize(
    ("original", "update"),
    [(UNSURE_ORIGINAL, UNSURE_UPDATE), (ORIGINAL, "x = 1\n"), (ORIGINAL, "")],
)
def test_an_error_says_where_the_update_stands(
    client: httpx.Client, original: str, update: str
) -> None:
    message = chat_error(client, original, update)["message"]
    assert "<update> is the update" in message
    assert "edit_snippet" not in message
    flat = client.post("/v1/code/apply", json=fields(original, update))
    assert "`edit_snippet` is the update" in flat.json()["error"]
    assert "<update>" not in flat.json()["error"]


@pytest.mark.parametrize("end", ["", "# ... existing code ...\n"])
def test_what_follows_the_update_stays_with_a_marker_or_without(
    client: httpx.Client, end: str
) -> None:
    messages = tagged(ORIGINAL, UPDATE + end)
    answer = client.post("/v1/chat/completions", json={"model": "auto", "messages": messages})
    assert answer.status_code == 200, answer.text
    merged = answer.json()["choices"][0]["message"]["content"]
    assert merged == ORIGINAL.replace("    return path", "    path = path.lower()\n    return path")


def test_an_error_that_is_of_no_text_names_none(client: httpx.Client) -> None:
    body = {"model": "other", "messages": tagged()}
    error = client.post("/v1/chat/completions", json=body).json()["error"]
    assert error["code"] == "model_not_found"
    assert "<update>" not in error["message"]
