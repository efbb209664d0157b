"""Errors speak of the edit in the words of the address that was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving
from tagged_edit import fields, tagged

ORIGINAL = "import sys\n\n\ndef name(path):\n    return path\n\n\nprint(name(sys.argv[1]))\n"
# Nothing says whether the last line stays.
OPEN_UPDATE = "# ... existing code ...\ndef name(path):\n    path = path.lower()\n    return path\n"


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[httpx.Client]:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def chat_error(client: httpx.Client, update: str) -> dict[str, Any]:
    messages = tagged(ORIGINAL, update)
    answer = client.post("/v1/chat/completions", json={"model": "auto", "messages": messages})
    assert answer.status_code >= 400
    error: dict[str, Any] = answer.json()["error"]
    return error


@pytest.mark.parametrize("update", [OPEN_UPDATE, "x = 1\n", ""])
def test_an_error_says_where_the_update_stands(client: httpx.Client, update: str) -> None:
    message = chat_error(client, update)["message"]
    assert "<update> is the update" in message
    assert "edit_snippet" not in message
    flat = client.post("/v1/code/apply", json=fields(ORIGINAL, update))
    assert "`edit_snippet` is the update" in flat.json()["error"]
    assert "<update>" not in flat.json()["error"]


def test_a_missing_marker_is_shown_as_it_is_to_be_written(client: httpx.Client) -> None:
    error = chat_error(client, OPEN_UPDATE)
    (finding,) = error["findings"]
    assert "add a line `// ... existing code ...`" in finding["hint"]
    assert "at the end" in finding["hint"]
    answer = client.post(
        "/v1/chat/completions",
        json={
            "model": "auto",
            "messages": tagged(ORIGINAL, f"{OPEN_UPDATE}# ... existing code ...\n"),
        },
    )
    assert answer.status_code == 200, answer.text
    merged = answer.json()["choices"][0]["message"]["content"]
    assert merged == ORIGINAL.replace("    return path", "    path = path.lower()\n    return path")


def test_an_error_that_is_of_no_text_names_none(client: httpx.Client) -> None:
    body = {"model": "other", "messages": tagged()}
    error = client.post("/v1/chat/completions", json=body).json()["error"]
    assert error["code"] == "model_not_found"
    assert "<update>" not in error["message"]
