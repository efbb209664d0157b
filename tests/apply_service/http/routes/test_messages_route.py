"""`POST /v1/messages` with edits; `make test-clients` runs Anthropic's own package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_server import guarded
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_service import MODEL_NAME, OracleService
from server_thread import serving
from tagged_edit import MERGED, MISPLACED, UNSURE_ORIGINAL, UNSURE_UPDATE, tagged

from apply_service.http.guard.keys.authentication import AccessRules


@pytest.fixture(scope="module")
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    return oracle


@pytest.fixture(scope="module")
def client(oracle: OracleService) -> Iterator[httpx.Client]:
    headers = {"x-api-key": "anything", "anthropic-version": "2023-06-01"}
    with (
        serving(oracle.service) as url,
        httpx.Client(base_url=url, headers=headers, timeout=30) as client,
    ):
        yield client


def ask(client: httpx.Client, **changes: Any) -> httpx.Response:
    body = {"model": "auto", "max_tokens": 4096, "messages": tagged()} | changes
    return client.post("/v1/messages", json=body)


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error of an answer, which has all of Anthropic's members."""
    body = answer.json()
    assert body["type"] == "error"
    assert body["request_id"] == answer.headers["X-Request-Id"]
    error: dict[str, Any] = body["error"]
    assert {"type", "message", "code"} <= set(error)
    return error


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream, each under its name."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = []
    for block in answer.text.removesuffix("\n\n").split("\n\n"):
        name, _, data = block.partition("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def test_an_edit_is_answered_with_the_merged_file(client: httpx.Client) -> None:
    answer = ask(client)
    assert answer.status_code == 200, answer.text
    message = answer.json()
    assert [block["text"] for block in message["content"]] == [MERGED]
    assert (message["type"], message["role"], message["model"]) == (
        "message",
        "assistant",
        MODEL_NAME,
    )
    assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
    assert message["apply"]["status"] == answer.headers["X-Apply-Status"] == "applied"
    assert set(message["usage"]) >= {"input_tokens", "output_tokens", "cache_read_input_tokens"}


def test_a_stream_has_every_event_in_order(client: httpx.Client) -> None:
    original = "".join(f"line_{number} = {number}\n" for number in range(500))
    messages = tagged(original, "# ... existing code ...\nline_498 = 498\nline_499 = 0\n")
    whole = ask(client, messages=messages).json()
    start, block, *deltas, stop, end, last = events_of(ask(client, messages=messages, stream=True))
    assert [event["type"] for event in (start, block, stop, end, last)] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert len(deltas) > 2
    assert {event["type"] for event in deltas} == {"content_block_delta"}
    text = "".join(event["delta"]["text"] for event in deltas)
    assert text == whole["content"][0]["text"] == original.replace("= 499", "= 0")
    assert (start["message"]["content"], start["message"]["stop_reason"]) == ([], None)
    assert end["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert (end["apply"], end["usage"]) == (whole["apply"], whole["usage"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_result_in_doubt_is_a_question(client: httpx.Client, stream: bool) -> None:
    messages = tagged(UNSURE_ORIGINAL, UNSURE_UPDATE)
    asked = ask(client, messages=messages, stream=stream)
    error = error_of(asked)
    assert (asked.status_code, error["type"]) == (422, "invalid_request_error")
    assert error["code"] == "needs_review"
    choices = error["choices"]
    assert f"choice {choices[1]['id']} (" in error["message"]
    texts = {
        ask(client, messages=messages, resolve=choice["id"]).json()["content"][0]["text"]
        for choice in choices
    }
    assert len(texts) == len(choices) > 1
    unknown = ask(client, messages=messages, resolve="0" * 16)
    assert (unknown.status_code, unknown.headers["X-Should-Retry"]) == (409, "false")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"tools": [{"name": "f", "input_schema": {}}]}, "`tools`"),
        ({"tool_choice": {"type": "any"}}, "`tool_choice`"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "`thinking`"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "`output_config`"),
        ({"stop_sequences": [""]}, "`stop_sequences`"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 1.5}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "hello"}]}, "<update>the changed lines"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [*tagged(), {"role": "assistant", "content": "def"}]}, "the assistant's"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages[0].content[0]",
        ),
        ({"system": [{"type": "image"}]}, "system[0]"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    client: httpx.Client, changes: dict[str, Any], named: str
) -> None:
    answer = ask(client, **changes)
    error = error_of(answer)
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert named in error["message"]


def test_what_changes_nothing_is_taken(client: httpx.Client) -> None:
    answer = ask(
        client,
        system=[{"type": "text", "text": "Merge.", "cache_control": {"type": "ephemeral"}}],
        messages=[
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [{"type": "text", "text": "Send an edit."}]},
            *tagged(),
        ],
        metadata={"user_id": "1"},
        thinking={"type": "disabled"},
        service_tier="auto",
        tools=[],
    )
    assert answer.json()["content"][0]["text"] == MERGED


def test_other_errors_have_anthropic_s_types(client: httpx.Client) -> None:
    rejected = ask(client, messages=tagged(update=MISPLACED))
    assert (rejected.status_code, error_of(rejected)["code"]) == (422, "rejected")
    assert error_of(ask(client, model="claude"))["type"] == "not_found_error"
    too_large = ask(client, messages=tagged(original="x" * 20_001))
    assert (too_large.status_code, error_of(too_large)["type"]) == (413, "request_too_large")
    assert error_of(client.post("/v1/messages", content=b"{"))["code"] == "invalid_json"
    assert error_of(client.get("/v1/messages"))["code"] == "method_not_allowed"
    assert error_of(client.post("/v1/messages/count_tokens"))["type"] == "not_found_error"


def test_the_key_stands_in_anthropic_s_header(tiny_model_dir: Path, tmp_path: Path) -> None:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    rules = AccessRules(is_private=False, allows_anonymous=False, metrics_need_key=True)
    with guarded(oracle.service, tmp_path, rules=rules) as server, server.client() as client:
        key = server.keys.create("a", ("apply",)).text
        wrong = ask(client)
        assert (wrong.status_code, error_of(wrong)["type"]) == (401, "authentication_error")
        client.headers["x-api-key"] = key
        while (answer := ask(client)).status_code == 401:  # until the new key is read
            pass
        assert answer.json()["content"][0]["text"] == MERGED


odd_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "role", "content", "text"]), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ["messages", "system", "stop_sequences", "stream", "max_tokens", "thinking", "resolve"]


@settings(max_examples=60, deadline=None)
@given(members=st.dictionaries(st.sampled_from(FIELDS), odd_json, max_size=3))
def test_no_body_breaks_the_server(client: httpx.Client, members: dict[str, Any]) -> None:
    body = json.dumps({"messages": tagged()} | members)
    answer = client.post("/v1/messages", content=body)
    assert answer.status_code in (200, 400, 409, 422), answer.text
    assert answer.status_code == 200 or error_of(answer)["message"]
