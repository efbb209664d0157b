"""`POST /v1/code/apply` with a plain HTTP client, as clients of Relace and Morph are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import MODEL_NAME, OracleService
from recorded_requests import events_of, streamed_text
from server_thread import serving
from tagged_edit import (
    MERGED,
    MISPLACED,
    UNSURE_ORIGINAL,
    UNSURE_UPDATE,
    UPDATE,
    fields,
    tells_both_places,
)

from apply_service.http.compat.settings import CompatSettings
from apply_service.version import system_fingerprint

ADDRESS = "/v1/code/apply"


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(MERGED.split("\n")[:-1])
    return oracle


@pytest.fixture
def client(oracle: OracleService) -> Iterator[httpx.Client]:
    with serving(oracle.service) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def flat_error(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/json"
    error: dict[str, Any] = response.json()
    assert isinstance(error["error"], str)
    assert error["error"]
    return error


def test_the_merged_file_has_both_names(client: httpx.Client) -> None:
    response = client.post(ADDRESS, json={**fields(), "model": "relace-apply-3"})
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["mergedCode"] == answer["merged_code"] == MERGED
    usage = answer["usage"]
    assert 0 < usage["completion_tokens"] < usage["prompt_tokens"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert answer["model"] == MODEL_NAME
    assert answer["system_fingerprint"] == system_fingerprint("oracle-fingerprint", None)
    confidence = answer["apply"]["confidence"]
    assert answer["apply"] == {
        "status": "applied",
        "confidence": confidence,
        "findings": [],
        "choices": [],
    }
    assert 0.5 < confidence <= 1
    assert response.headers["X-Apply-Status"] == "applied"


def test_a_stream_is_openai_s_with_the_usage_in_its_last_piece(client: httpx.Client) -> None:
    response = client.post(ADDRESS, json={**fields(), "stream": True})
    assert response.headers["Content-Type"].startswith("text/event-stream")
    events = events_of(response.text)
    assert streamed_text(events) == MERGED
    assert all(len(event["choices"]) == 1 for event in events)
    assert ["usage" in event for event in events] == [False] * (len(events) - 1) + [True]
    assert events[-1]["apply"]["status"] == "applied"


def test_an_instruction_reaches_the_model(client: httpx.Client) -> None:
    plain = client.post(ADDRESS, json=fields()).json()["usage"]["prompt_tokens"]
    for name in ("instruction", "instructions"):
        body = {**fields(), name: "Do it."}
        assert client.post(ADDRESS, json=body).json()["usage"]["prompt_tokens"] > plain
    assert client.post(ADDRESS, json={**fields(), "instruction": ""}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_result_in_doubt(client: httpx.Client, oracle: OracleService, stream: bool) -> None:
    oracle.will_answer(["a = 1", "b = 1"])
    body = {**fields(UNSURE_ORIGINAL, UNSURE_UPDATE), "stream": stream}
    error = flat_error(client.post(ADDRESS, json=body), 422)
    assert error["code"] == "needs_review"
    assert "ambiguous_place" in error["error"]
    assert tells_both_places(error["error"])
    (finding,) = error["findings"]
    assert finding["hint"] in error["error"]
    oracle.service.compat = CompatSettings(review="accept")
    response = client.post(ADDRESS, json=body)
    assert response.status_code == 200
    assert response.headers["X-Apply-Status"] == "needs_review"
    last = events_of(response.text)[-1] if stream else response.json()
    assert last["apply"]["findings"] == [finding]


@pytest.mark.parametrize("stream", [False, True])
def test_a_rejected_result(client: httpx.Client, oracle: OracleService, stream: bool) -> None:
    oracle.service.compat = CompatSettings(review="accept")
    body = {**fields(update=MISPLACED), "stream": stream}
    error = flat_error(client.post(ADDRESS, json=body), 422)
    assert error["code"] == "rejected"
    assert error["findings"][0]["code"] == "anchor_not_found"


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 400, "`initial_code` (or `initialCode`) is missing"),
        ({"initialCode": "x"}, 400, "`edit_snippet` (or `editSnippet`) is missing"),
        ({"edit_snippet": "x"}, 400, "`initial_code`"),
        ({**fields(), "initialCode": "other"}, 400, "`initial_code` and `initialCode`"),
        ({**fields(), "instruction": "a", "instructions": "b"}, 400, "are different"),
        ({**fields(), "initial_code": 5}, 400, "initial_code: Expected `str"),
        ({**fields(), "stream": "yes"}, 400, "stream: Expected `bool"),
        ({**fields(), "edit_snippet": ""}, 400, "0 lines"),
        ({**fields(), "initial_code": "a\0"}, 400, "NUL at byte 1"),
        ({**fields(), "model": "gpt-9"}, 404, "'gpt-9' is not served"),
        ({**fields(), "initial_code": "x" * 20_001}, 413, "20001 bytes, the limit is 20000"),
        ({**fields(), "initial_code": "x" * 100_000}, 413, "100000 bytes"),
        ({"initial_code": "a = 1\n", "edit_snippet": "b"}, 422, ""),
    ],
)
def test_errors_are_flat(
    client: httpx.Client, body: dict[str, Any], status: int, text: str
) -> None:
    assert text in flat_error(client.post(ADDRESS, json=body), status)["error"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"{", "line 1, column 2"),
        (b"", "column 1"),
        (b"[]", "array"),
        (b'{"model": "\xff"}', "UTF-8"),
    ],
)
def test_broken_bodies_and_methods(client: httpx.Client, content: bytes, text: str) -> None:
    assert text in flat_error(client.post(ADDRESS, content=content), 400)["error"]
    flat_error(client.get(ADDRESS), 405)


def test_an_unforeseen_error_is_flat_too(client: httpx.Client, oracle: OracleService) -> None:
    del oracle.service.compat
    error = flat_error(client.post(ADDRESS, json={"edit_snippet": UPDATE, "model": "x"}), 500)
    assert error["code"] == "internal"
