"""Endpoints of every known API, over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from edit_endpoint import EditEndpoint, Scripted, edit_endpoint

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.contenders.endpoint import (
    MAX_ATTEMPTS,
    MAX_WAIT_S,
    Endpoint,
    EndpointError,
)
from apply_service.evaluate.contenders.remote import RemoteContender, detect_api, split_url
from apply_service.evaluate.contenders.wire_formats import FORMATS, Api

CASE = Case(
    id="a",
    path="a.py",
    original="x = 1\n</code>é\n",
    update="x = 2\n# ... existing code ...\n",
    expected="x = 2\n</code>é\n",
    instruction="I set x to two.",
)
APPLY_RESULT = {
    "status": "needs_review",
    "merged": CASE.expected,
    "findings": [{"severity": "warning", "code": "place_guessed", "message": "perhaps here"}],
    "source": "model",
    "usage": {"completion_tokens": 9},
    "speculation": {"target_passes": 2},
}


@pytest.fixture
def endpoint() -> Iterator[EditEndpoint]:
    with edit_endpoint() as served:
        yield served


def client(
    endpoint: EditEndpoint, *, api_key: str | None = None, waits: list[float] | None = None
) -> Endpoint:
    record = waits if waits is not None else []
    return Endpoint(endpoint.url, api_key=api_key, timeout_s=10.0, sleep=record.append)


def contender(
    endpoint: EditEndpoint, api: Api, model: str | None = None, **options: Any
) -> RemoteContender:
    return RemoteContender(client(endpoint, **options), api, model=model)


def chat(content: str) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": content}}],
        "usage": {"completion_tokens": 7},
    }


def test_morph_is_asked_with_its_tags(endpoint: EditEndpoint) -> None:
    endpoint.answers("/v1/chat/completions", Scripted(200, chat(CASE.expected)))
    answer = contender(endpoint, "morph", api_key="secret", model="morph-v3-fast").answer(CASE)
    assert (answer.status, answer.text) == ("applied", CASE.expected)
    assert answer.num_output_tokens == 7
    assert answer.num_target_passes is None
    assert answer.seconds > 0
    received = endpoint.received[0]
    assert received.headers["Authorization"] == "Bearer secret"
    assert received.body == {
        "model": "morph-v3-fast",
        "messages": [
            {
                "role": "user",
                "content": "<instruction>I set x to two.</instruction>\n"
                "<code>x = 1\n</code>é\n</code>\n"
                "<update>x = 2\n# ... existing code ...\n</update>",
            }
        ],
    }


@pytest.mark.parametrize("name", ["mergedCode", "merged_code"])
def test_relace_answers_in_either_spelling(endpoint: EditEndpoint, name: str) -> None:
    endpoint.answers("/v1/code/apply", Scripted(200, {name: CASE.original, "usage": None}))
    answer = contender(endpoint, "relace").answer(CASE)
    assert (answer.status, answer.text) == ("unchanged", CASE.original)
    assert endpoint.received[0].body == {
        "model": "auto",
        "initial_code": CASE.original,
        "edit_snippet": CASE.update,
        "stream": False,
        "instruction": CASE.instruction,
    }
    assert "Authorization" not in endpoint.received[0].headers


def test_apply_service_tells_its_own_status(endpoint: EditEndpoint) -> None:
    endpoint.answers("/v1/apply", Scripted(200, APPLY_RESULT))
    answer = contender(endpoint, "apply").answer(CASE)
    assert (answer.status, answer.text) == ("needs_review", CASE.expected)
    assert answer.notes == ("warning place_guessed: perhaps here",)
    assert (answer.num_output_tokens, answer.num_target_passes) == (9, 2)
    assert endpoint.received[0].body["path"] == "a.py"
    assert "model" not in endpoint.received[0].body


def test_what_apply_service_rejects_is_rejected(endpoint: EditEndpoint) -> None:
    finding = {"severity": "error", "code": "marker_left", "message": "a marker is left"}
    endpoint.answers("/v1/apply", Scripted(422, {"detail": "no", "findings": [finding]}))
    answer = contender(endpoint, "apply").answer(CASE)
    assert (answer.status, answer.notes) == ("rejected", ("error marker_left: a marker is left",))


@pytest.mark.parametrize(
    ("api", "scripted", "note"),
    [
        ("morph", Scripted(422, {"error": {"message": "bad body"}}), "bad body"),
        ("relace", Scripted(401, {"error": "no key"}), "no key"),
        ("apply", Scripted(413, {"detail": "too large"}), "too large"),
        ("morph", Scripted(500, b"<html>"), "<html>"),
        ("morph", Scripted(200, b"not json"), "not JSON"),
        ("morph", Scripted(200, {"choices": []}), "no choices"),
        ("morph", Scripted(200, []), "not an object"),
        ("relace", Scripted(200, {"mergedCode": None}), "not a text"),
        ("apply", Scripted(200, {"status": "merged"}), "apply-service has no such status"),
    ],
)
def test_failures_are_answers_with_their_reason(
    endpoint: EditEndpoint, api: Api, scripted: Scripted, note: str
) -> None:
    endpoint.answers(FORMATS[api].path, scripted)
    answer = contender(endpoint, api).answer(CASE)
    assert answer.status == "failed"
    assert note in " ".join(answer.notes)


def test_a_busy_endpoint_is_asked_again_when_it_says_so(endpoint: EditEndpoint) -> None:
    waits: list[float] = []
    endpoint.answers(
        "/v1/code/apply",
        Scripted(429, {"error": "slow down"}, {"Retry-After": "7"}),
        Scripted(429, {"error": "slow down"}),
        Scripted(503, {"error": "later"}, {"Retry-After": formatdate(time.time() + 30)}),
        Scripted(429, {"error": "slow down"}, {"Retry-After": "9999"}),
        Scripted(429, {"error": "slow down"}, {"Retry-After": "soon"}),
        Scripted(200, {"mergedCode": CASE.expected}),
    )
    answer = contender(endpoint, "relace", waits=waits).answer(CASE)
    assert answer.status == "applied"
    assert waits[:2] == [7.0, 2.0]
    assert 20 < waits[2] <= 30
    assert waits[3:] == [MAX_WAIT_S, 16.0]
    assert answer.seconds < 7


def test_an_endpoint_that_stays_busy_is_counted_as_failed(endpoint: EditEndpoint) -> None:
    endpoint.answers("/v1/code/apply", Scripted(429, {"error": "slow down"}))
    answer = contender(endpoint, "relace").answer(CASE)
    assert answer.status == "failed"
    assert answer.notes == ("HTTP 429", "slow down")
    assert len(endpoint.received) == MAX_ATTEMPTS


def test_a_redirect_does_not_get_the_file_and_the_key(endpoint: EditEndpoint) -> None:
    endpoint.answers("/v1/code/apply", Scripted(302, {}, {"Location": endpoint.url + "/other"}))
    answer = contender(endpoint, "relace", api_key="secret").answer(CASE)
    assert answer.status == "failed"
    assert [received.path for received in endpoint.received] == ["/v1/code/apply"]


def test_nobody_listening_is_a_failure() -> None:
    with edit_endpoint() as endpoint:
        gone = contender(endpoint, "morph")
    answer = gone.answer(CASE)
    assert answer.status == "failed"
    assert "did not answer" in answer.notes[0]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "localhost:8000", "http://"])
def test_only_http_addresses_are_asked(url: str) -> None:
    with pytest.raises(EndpointError, match="not an http"):
        Endpoint(url, api_key=None, timeout_s=1.0)


@pytest.mark.parametrize(
    ("url", "base_url", "api"),
    [
        ("http://h:1/v1/chat/completions", "http://h:1", "morph"),
        ("https://h/v1/code/apply/", "https://h", "relace"),
        ("https://h/api/v1/apply", "https://h/api", "apply"),
        ("https://h/api/v1", "https://h/api", None),
        ("https://h", "https://h", None),
    ],
)
def test_the_address_may_tell_the_api(url: str, base_url: str, api: Api | None) -> None:
    assert split_url(url) == (base_url, api)


@pytest.mark.parametrize(
    ("owner", "api"), [("apply-service", "apply"), ("openai", "morph"), (None, "morph")]
)
def test_the_list_of_models_tells_the_api(
    endpoint: EditEndpoint, owner: str | None, api: Api
) -> None:
    endpoint.answers("/v1/models", Scripted(200, {"data": [{"id": "m", "owned_by": owner}]}))
    assert detect_api(client(endpoint)) == api


def test_without_a_list_of_models_the_api_must_be_said(endpoint: EditEndpoint) -> None:
    with pytest.raises(EndpointError, match="--api"):
        detect_api(client(endpoint))
