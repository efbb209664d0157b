"""`POST /v1/responses` with edits: OpenAI's own client, over a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from guarded_server import guarded
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from oracle_service import MODEL_NAME, OracleService
from server_thread import serving
from tagged_edit import (
    MERGED,
    MISPLACED,
    ORIGINAL,
    UNSURE_ORIGINAL,
    UNSURE_UPDATE,
    UPDATE,
    tagged,
    tells_both_places,
)

from apply_service.http.compat.settings import CompatSettings
from apply_service.http.guard.keys.authentication import AccessRules

WAIT_S = 30
BEGUN = ["created", "in_progress", "output_item.added", "content_part.added"]
ENDED = ["output_text.done", "content_part.done", "output_item.done", "completed"]


def message(original: str = ORIGINAL, update: str = UPDATE) -> str:
    """The text of a user's message."""
    return str(tagged(original, update)[0]["content"])


@pytest.fixture(scope="module")
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    return oracle


@pytest.fixture(scope="module")
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as url:
        yield url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{url}/v1", api_key="anything", max_retries=0, timeout=WAIT_S
    ) as client:
        yield client


@pytest.fixture
def accepting(oracle: OracleService) -> Iterator[None]:
    """Results in doubt are returned."""
    oracle.service.compat = CompatSettings(review="accept")
    yield
    oracle.service.compat = CompatSettings()


def create(client: openai.OpenAI, **options: Any) -> Response:
    options = {"model": "auto", "input": message()} | options
    answer = client.responses.create(**options)
    assert isinstance(answer, Response)
    return answer


def stream(client: openai.OpenAI, **options: Any) -> list[ResponseStreamEvent]:
    options = {"model": "auto", "input": message()} | options
    return list(client.responses.create(stream=True, **options))


def refusal(client: openai.OpenAI, **options: Any) -> openai.APIStatusError:
    """The error of a request, which must have all of OpenAI's fields."""
    with pytest.raises(openai.APIStatusError) as caught:
        create(client, **options)
    error = caught.value
    assert isinstance(error.body, dict)
    assert {"message", "type", "param", "code"} <= set(error.body)
    return error


def test_an_edit_is_answered_with_the_merged_file(client: openai.OpenAI, url: str) -> None:
    raw = client.responses.with_raw_response.create(
        model="morph-v3-fast", input=message(), metadata={"a": "b"}, temperature=0.5, store=True
    )
    answer = raw.parse()
    assert isinstance(answer, Response)
    assert answer.output_text == MERGED
    assert (answer.object, answer.status, answer.model) == ("response", "completed", MODEL_NAME)
    assert (answer.metadata, answer.temperature) == ({"a": "b"}, 0.5)
    assert (answer.error, answer.incomplete_details, answer.previous_response_id) == (None,) * 3
    assert answer.model_dump()["store"] is False, "nothing is kept, whatever was asked"
    assert answer.completed_at is not None
    assert answer.created_at <= answer.completed_at
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert raw.headers["X-Apply-Status"] == "applied"
    note = answer.model_dump()["apply"]
    assert (note["status"], note["findings"], note["choices"]) == ("applied", [], [])
    native = httpx.post(f"{url}/v1/apply", json={"original": ORIGINAL, "update": UPDATE}).json()
    assert native["merged"] == answer.output_text


def test_a_stream_has_every_event_in_order(client: openai.OpenAI) -> None:
    original = "".join(f"line_{number} = {number}\n" for number in range(500))
    text = message(original, "# ... existing code ...\nline_498 = 498\nline_499 = 0\n")
    whole = create(client, input=text)
    events = stream(client, input=text)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type.removeprefix("response.") for event in events]
    deltas = types[len(BEGUN) : -len(ENDED)]
    assert (types[: len(BEGUN)], types[-len(ENDED) :]) == (BEGUN, ENDED)
    assert len(deltas) > 2
    assert set(deltas) == {"output_text.delta"}
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(pieces) == whole.output_text == original.replace("= 499", "= 0")
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == whole.output_text
    assert last.response.model_dump()["apply"] == whole.model_dump()["apply"]
    items = {event.item_id for event in events if hasattr(event, "item_id")}
    assert items == {last.response.output[0].id}


def test_the_package_s_own_accumulator_takes_the_stream(client: openai.OpenAI) -> None:
    with client.responses.stream(model="auto", input=message()) as events:
        snapshots = [event.snapshot for event in events if hasattr(event, "snapshot")]
        final = events.get_final_response()
    assert snapshots[-1] == final.output_text == MERGED
    assert final.status == "completed"
    assert final.usage is not None


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_result_in_doubt_is_a_question(client: openai.OpenAI, is_streamed: bool) -> None:
    asked: dict[str, Any] = {"input": message(UNSURE_ORIGINAL, UNSURE_UPDATE)}
    error = refusal(client, stream=is_streamed, **asked)
    assert (error.status_code, error.code) == (422, "needs_review")
    assert tells_both_places(error.message)
    assert isinstance(error.body, dict)
    choices = error.body["choices"]
    texts = [create(client, extra_body={"resolve": one["id"]}, **asked) for one in choices]
    assert len({answer.output_text for answer in texts}) == len(choices) > 1
    streamed = stream(client, extra_body={"resolve": choices[1]["id"]}, **asked)[-1]
    assert streamed.type == "response.completed"
    assert streamed.response.output_text == texts[1].output_text


def test_a_choice_of_another_edit_is_asked_for_once(client: openai.OpenAI) -> None:
    patient = client.with_options(max_retries=2)
    error = refusal(
        patient,
        input=message(UNSURE_ORIGINAL, UNSURE_UPDATE),
        extra_body={"resolve": "0" * 16},
    )
    assert (error.status_code, error.code) == (409, "unknown_choice")
    assert error.response.headers["x-should-retry"] == "false"
    assert isinstance(error.body, dict)
    assert len(error.body["choices"]) > 1


@pytest.mark.usefixtures("accepting")
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_doubt_that_is_accepted_stands_in_the_response(
    client: openai.OpenAI, is_streamed: bool
) -> None:
    asked: dict[str, Any] = {"input": message(UNSURE_ORIGINAL, UNSURE_UPDATE)}
    if is_streamed:
        last = stream(client, **asked)[-1]
        assert last.type == "response.completed"
        answer = last.response
    else:
        answer = create(client, **asked)
    note = answer.model_dump()["apply"]
    assert (answer.status, note["status"]) == ("completed", "needs_review")
    assert len(note["choices"]) > 1


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_rejected_result_is_never_returned(client: openai.OpenAI, is_streamed: bool) -> None:
    error = refusal(client, input=message(update=MISPLACED), stream=is_streamed)
    assert (error.status_code, error.code, error.type) == (422, "rejected", "invalid_request_error")
    assert "hint: " in error.message


@pytest.mark.parametrize(
    "asked",
    [
        [{"role": "user", "content": message()}],
        [
            {"type": "message", "role": "developer", "content": "Merge."},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Send an edit."}]},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": message()[:40]},
                    {"type": "input_text", "text": message()[40:]},
                ],
            },
        ],
    ],
)
def test_input_may_be_items(client: openai.OpenAI, asked: Any) -> None:
    assert create(client, input=asked, instructions="Be exact.").output_text == MERGED


def test_an_answer_is_input_again(client: openai.OpenAI) -> None:
    """As clients carry on a conversation that the server does not keep."""
    answer = create(client)
    turn: Any = {"role": "user", "content": message(answer.output_text, "import sys\n\n\n# ...\n")}
    history: list[Any] = [{"role": "user", "content": message()}, *answer.output, turn]
    error = refusal(client, input=[*history[:-1], {"type": "item_reference", "id": "msg_1"}])
    assert (error.status_code, error.param) == (400, "input[2].type")
    again = client.responses.create(model="auto", input=history, extra_body={})
    assert again.status == "completed"
    assert "import sys" in again.output_text


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [{"type": "function", "name": "f", "parameters": {}}]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"moderation": {"model": "omni"}}, "moderation"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"temperature": 2.5}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"metadata": {"a": 1}}, "metadata[...]"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": "hello"}, "input"),
        ({"input": message(original="a</code>\n<update>\n")}, "input"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}]},
            "input[0].content[0]",
        ),
        ({"extra_body": {"resolve": ""}}, "resolve"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    client: openai.OpenAI, options: dict[str, Any], param: str
) -> None:
    error = refusal(client, **options)
    assert isinstance(error, openai.BadRequestError)
    assert (error.param, error.type) == (param, "invalid_request_error")


def test_what_changes_nothing_is_taken(client: openai.OpenAI) -> None:
    answer = create(
        client,
        tools=[],
        tool_choice="auto",
        parallel_tool_calls=True,
        truncation="disabled",
        background=False,
        text={"format": {"type": "text"}},
        reasoning={"effort": "none", "summary": None},
        include=["reasoning.encrypted_content"],
        service_tier="auto",
        prompt_cache_key="k",
        max_output_tokens=4096,
    )
    assert answer.output_text == MERGED


def test_responses_are_not_kept(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.retrieve(create(client).id)
    assert caught.value.code == "not_found"


def test_unknown_models_and_wrong_keys(
    client: openai.OpenAI, tiny_model_dir: Path, tmp_path: Path
) -> None:
    error = refusal(client, model="gpt-9")
    assert (error.status_code, error.code, error.param) == (404, "model_not_found", "model")
    rules = AccessRules(is_private=False, allows_anonymous=False, metrics_need_key=True)
    with (
        guarded(OracleService(tiny_model_dir).service, tmp_path, rules=rules) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0) as stranger,
    ):
        error = refusal(stranger)
        assert isinstance(error, openai.AuthenticationError)
        assert error.code == "invalid_api_key"


odd = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats()
odd_json = st.recursive(
    odd,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "format"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
FIELDS = ["input", "instructions", "text", "include", "stream", "metadata", "reasoning", "resolve"]


@settings(max_examples=60, deadline=None)
@given(members=st.dictionaries(st.sampled_from(FIELDS), odd_json, max_size=3))
def test_no_body_breaks_the_server(url: str, members: dict[str, Any]) -> None:
    body = json.dumps({"input": message()} | members)
    answer = httpx.post(f"{url}/v1/responses", content=body)
    assert answer.status_code in (200, 400, 409, 422), answer.text
    assert answer.status_code == 200 or answer.json()["error"]["message"]
