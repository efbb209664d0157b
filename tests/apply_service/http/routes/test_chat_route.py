"""`POST /v1/chat/completions` with edits: OpenAI's own client, over a socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from guarded_server import guarded
from litestar.testing import TestClient
from openai.types.chat import ChatCompletion
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

from apply_service.apply import conclusion
from apply_service.http.app import create_app
from apply_service.http.compat.settings import DEFAULT_ALIASES, CompatSettings
from apply_service.http.guard.keys.authentication import AccessRules
from apply_service.http.guard.limits.rate_limits import RateLimits, RateLimitSettings
from apply_service.service import ApplyService, LoadedModel
from batching.engine import Engine

WAIT_S = 30
PUBLIC = AccessRules(is_private=False, allows_anonymous=False, metrics_need_key=True)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(MERGED.split("\n")[:-1])
    return oracle


@pytest.fixture
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as url:
        yield url
        oracle.runner.gate.set()


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{url}/v1", api_key="anything", max_retries=0, timeout=WAIT_S
    ) as client:
        yield client


def complete(client: openai.OpenAI, messages: list[Any], **options: Any) -> ChatCompletion:
    options.setdefault("model", "auto")
    answer = client.chat.completions.create(messages=messages, **options)
    assert isinstance(answer, ChatCompletion)
    return answer


def refusal(client: openai.OpenAI, messages: list[Any], **options: Any) -> openai.APIStatusError:
    """The error of a request, which must have all of OpenAI's fields."""
    with pytest.raises(openai.APIStatusError) as caught:
        complete(client, messages, **options)
    error = caught.value
    assert isinstance(error.body, dict)
    assert {"message", "type", "param", "code"} <= set(error.body)
    assert error.body["message"] in str(error)
    return error


def test_an_edit_is_answered_with_the_merged_file(client: openai.OpenAI, url: str) -> None:
    answer = complete(client, tagged(), model="morph-v3-fast")
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (MERGED, "stop")
    assert choice.message.role == "assistant"
    assert (answer.model, answer.object) == (MODEL_NAME, "chat.completion")
    assert 0 <= time.time() - answer.created < WAIT_S
    usage = answer.usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.completion_tokens_details is not None
    accepted = usage.completion_tokens_details.accepted_prediction_tokens
    assert accepted is not None
    assert 0 < accepted <= usage.completion_tokens
    assert usage.completion_tokens_details.rejected_prediction_tokens is not None
    again = complete(client, tagged())
    assert again.usage is not None
    assert again.usage.prompt_tokens_details is not None
    assert again.usage.prompt_tokens_details.cached_tokens
    native = httpx.post(f"{url}/v1/apply", json={"original": ORIGINAL, "update": UPDATE}).json()
    assert native["merged"] == MERGED
    card = client.models.retrieve("auto").model_dump()
    assert answer.system_fingerprint == native["system_fingerprint"] == card["system_fingerprint"]


def test_a_stream_has_the_same_text(client: openai.OpenAI, oracle: OracleService) -> None:
    original = "".join(f"line_{number} = {number}\n" for number in range(500))
    update = "line_498 = 498\nline_499 = 0\n"
    oracle.service.default_use_model = "never"
    whole = complete(client, tagged(original, f"# ... existing code ...\n{update}"))
    chunks = list(
        client.chat.completions.create(
            model="auto",
            messages=tagged(original, f"# ... existing code ...\n{update}"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    *pieces, end, usage = chunks
    assert len(pieces) > 2
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
    assert text == whole.choices[0].message.content == original.replace("= 499", "= 0")
    assert [piece.choices[0].delta.role for piece in pieces[:2]] == ["assistant", None]
    assert end.choices[0].finish_reason == "stop"
    assert end.model_dump()["apply"] == whole.model_dump()["apply"]
    assert usage.choices == []
    assert usage.usage is not None
    assert all(chunk.usage is None for chunk in (*pieces, end))
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_verdict_stands_in_headers_and_body(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model="auto", messages=tagged())
    assert raw.headers["X-Apply-Status"] == "applied"
    note = raw.parse().model_dump()["apply"]
    assert (note["status"], note["findings"]) == ("applied", [])
    assert 0.5 < note["confidence"] <= 1
    assert float(raw.headers["X-Apply-Confidence"]) == pytest.approx(note["confidence"], abs=1e-3)


def test_what_is_not_here_says_so_as_openai_would(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model="apply", input="text")
    assert caught.value.code == "not_found"
    assert "GET /schema" in caught.value.message


def test_aliases_are_names_of_the_model(client: openai.OpenAI, oracle: OracleService) -> None:
    names = [model.id for model in client.models.list()]
    assert names == [MODEL_NAME, *DEFAULT_ALIASES]
    for name in names:
        assert complete(client, tagged(), model=name).choices[0].message.content == MERGED
        assert client.models.retrieve(name).id == name
    error = refusal(client, tagged(), model="gpt-9")
    assert isinstance(error, openai.NotFoundError)
    assert (error.code, error.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError, match="'a/b' is not served"):
        client.models.retrieve("a/b")
    oracle.service.compat = CompatSettings(model_aliases=("mine",))
    assert complete(client, tagged(), model="mine").choices[0].message.content == MERGED
    assert refusal(client, tagged(), model="auto").status_code == 404


@pytest.mark.parametrize("stream", [False, True])
def test_a_result_in_doubt_is_refused_or_returned(
    client: openai.OpenAI, oracle: OracleService, stream: bool
) -> None:
    oracle.will_answer(["a = 1", "b = 1"])
    unsure = tagged(UNSURE_ORIGINAL, UNSURE_UPDATE)
    error = refusal(client, unsure, stream=stream)
    assert isinstance(error, openai.UnprocessableEntityError)
    assert error.code == "needs_review"
    assert tells_both_places(error.message)
    assert "ambiguous_place" in error.message
    assert "hint:" in error.message
    assert isinstance(error.body, dict)
    (finding,) = error.body["findings"]
    assert finding["code"] == "ambiguous_place"
    oracle.service.compat = CompatSettings(review="accept")
    raw = client.chat.completions.with_raw_response.create(
        model="auto", messages=unsure, stream=stream
    )
    assert raw.headers["X-Apply-Status"] == "needs_review"
    answer: Any = raw.parse()
    if stream:
        chunks = list(answer)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        note = chunks[-1].model_dump()["apply"]
    else:
        text, note = answer.choices[0].message.content, answer.model_dump()["apply"]
    assert "print(a, end=None)\n" in text
    assert note["status"] == "needs_review"
    assert note["findings"] == [finding]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("review", ["refuse", "accept"])
def test_a_rejected_result_is_never_returned(
    client: openai.OpenAI, oracle: OracleService, stream: bool, review: Any
) -> None:
    oracle.service.compat = CompatSettings(review=review)
    error = refusal(client, tagged(update=MISPLACED), stream=stream)
    assert (error.status_code, error.code, error.type) == (422, "rejected", "invalid_request_error")
    assert "anchor_not_found" in error.message
    assert "hint: " in error.message


def test_an_answer_over_its_ceiling_is_refused(client: openai.OpenAI) -> None:
    for options in ({"max_tokens": 3}, {"max_completion_tokens": 3}, {"max_tokens": 3, "seed": 1}):
        error = refusal(client, tagged(), **options)
        assert isinstance(error.body, dict)
        assert (error.status_code, error.body["finish_reason"]) == (422, "length")
        assert "truncated" in error.message
    usage = complete(client, tagged(), max_tokens=64_000).usage
    assert usage is not None
    exact = complete(client, tagged(), max_tokens=usage.completion_tokens)
    assert exact.choices[0].message.content == MERGED
    assert refusal(client, tagged(), max_tokens=usage.completion_tokens - 1).status_code == 422


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"presence_penalty": -1}, "presence_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"extra_body": {"repetition_penalty": 1.2}}, "repetition_penalty"),
        ({"extra_body": {"min_p": 0.1}}, "min_p"),
        ({"stop": ["x", ""]}, "stop"),
        ({"stop": list("abcdefghijklmnopq")}, "stop"),
        ({"temperature": 2.5}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"seed": "x"}, "seed"),
        ({"stream": "yes"}, "stream"),
        ({"prediction": {"type": "content", "content": [{"type": "image"}]}},
         "prediction.content[0]"),
        ({"prediction": {"type": "other", "content": "x"}}, "prediction.type"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_name(
    client: openai.OpenAI, options: dict[str, Any], param: str
) -> None:
    error = refusal(client, tagged(), **options)
    assert isinstance(error, openai.BadRequestError)
    assert error.param == param
    assert error.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("messages", "param", "text"),
    [
        ([], "messages", "length >= 1"),
        ([{"role": "user", "content": "hello"}], "messages", "<update>the changed lines"),
        ([{"role": "system", "content": "hello"}], "messages", "<code>the whole file"),
        ([{"role": "user"}], "messages", "does not chat"),
        ([{"role": "tool", "content": "x", "tool_call_id": "1"}], "messages[0].role", "'tool'"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
            ],
            "messages[1].content[0]",
            "'image_url'",
        ),
        (tagged(update="\n"), None, "1 line and no text"),
        (tagged(original="a\0b"), None, "NUL at byte 1"),
        (tagged(original="a</code>\n<update>\n"), "messages", "/v1/code/apply"),
    ],
)
def test_messages_that_are_no_edit(
    client: openai.OpenAI, messages: list[Any], param: str | None, text: str
) -> None:
    error = refusal(client, messages)
    assert (error.status_code, error.param) == (400, param)
    assert text in error.message


def test_limits_and_broken_bodies(
    client: openai.OpenAI, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_large = refusal(client, tagged(original="x" * 20_001))
    assert (too_large.status_code, too_large.code) == (413, "file_too_large")
    steps = "".join(f"step({number}, {number * 7_919})\n" for number in range(400))
    messages = tagged(UNSURE_ORIGINAL, f"# ...\na = 1\n{steps}# ...\n")
    unasked = refusal(client, messages)
    assert (unasked.status_code, unasked.code) == (422, "needs_review")
    assert "place_unconfirmed" in str(unasked.body)
    monkeypatch.setattr(conclusion, "try_merge", lambda _: None)
    too_long = refusal(client, messages)
    assert (too_long.status_code, too_long.code) == (413, "context_length_exceeded")
    assert isinstance(too_long.body, dict)
    assert too_long.body["limit"] == 4096
    body_too_large = refusal(client, tagged(original="x" * 100_000))
    assert (body_too_large.status_code, body_too_large.code) == (413, "body_too_large")
    address = f"{url}/v1/chat/completions"
    for content, text in ((b"{", "line 1, column 2"), (b"", "column 1"), (b"[]", "array")):
        response = httpx.post(address, content=content)
        assert response.status_code == 400
        assert text in response.json()["error"]["message"]
    wrong_method = httpx.get(address)
    assert wrong_method.status_code == 405
    assert wrong_method.json()["error"]["code"] == "method_not_allowed"


def test_a_deadline_that_passes_is_not_asked_for_again(
    client: openai.OpenAI, oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle.service, "_default_deadline_s", 0.05)
    oracle.runner.step_s = 0.1
    patient = client.with_options(max_retries=2)
    error = refusal(patient, tagged(UNSURE_ORIGINAL, UNSURE_UPDATE), stream=True)
    assert (error.status_code, error.code) == (504, "deadline_exceeded")
    assert error.type == "server_error"
    assert error.response.headers["x-should-retry"] == "false"


def test_a_full_queue_is_a_rate_limit(client: openai.OpenAI, oracle: OracleService) -> None:
    """Four run and eight wait; of more some are refused, and all others are answered."""
    oracle.runner.gate.clear()

    def ask(_number: int) -> str | openai.RateLimitError | None:
        try:
            return complete(client, tagged()).choices[0].message.content
        except openai.RateLimitError as error:
            oracle.runner.gate.set()
            return error

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    errors = [answer for answer in answers if isinstance(answer, openai.RateLimitError)]
    assert 1 <= len(errors) <= 4
    for error in errors:
        assert (error.type, error.code) == ("rate_limit_error", "queue_full")
        assert int(error.response.headers["Retry-After"]) >= 1
    merged = [answer for answer in answers if not isinstance(answer, openai.RateLimitError)]
    assert set(merged) == {MERGED}


def test_a_client_that_leaves_frees_its_place(
    url: str, oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_noticed = threading.Event()
    cancel = Engine.cancel

    def cancel_and_tell(engine: Engine, request_id: str) -> None:
        cancel(engine, request_id)
        is_noticed.set()

    monkeypatch.setattr(Engine, "cancel", cancel_and_tell)
    oracle.runner.gate.clear()
    body = {"messages": tagged(), "stream": True}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/v1/chat/completions", json=body, timeout=0.5)
    assert is_noticed.wait(WAIT_S), "the answer is short: it must not be done before"
    oracle.runner.gate.set()
    engine = oracle.service.served.engine
    deadline = time.monotonic() + WAIT_S
    while engine.stats().num_running + engine.stats().num_waiting:
        assert time.monotonic() < deadline, engine.stats()
        time.sleep(0.01)
    assert engine.stats().cancelled == 1


def test_verdicts_and_problems_are_counted_once(
    client: openai.OpenAI, oracle: OracleService, url: str
) -> None:
    complete(client, tagged())
    oracle.will_answer(["a = 1", "b = 1"])
    refusal(client, tagged(UNSURE_ORIGINAL, UNSURE_UPDATE))
    refusal(client, tagged(), n=2)
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    counted = sorted(line for line in lines if line.startswith("apply_requests_total"))
    assert counted == [
        'apply_requests_total{result="applied"} 1.0',
        'apply_requests_total{result="needs_review"} 1.0',
        'apply_requests_total{result="unsupported-parameter"} 1.0',
    ]


def test_errors_of_the_guard_have_the_same_shape(tmp_path: Path, oracle: OracleService) -> None:
    limits = RateLimits(
        RateLimitSettings(requests_per_minute=2, tokens_per_minute=0, max_concurrent=0)
    )
    with (
        guarded(oracle.service, tmp_path, rules=PUBLIC, limits=limits) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0) as stranger,
    ):
        error = refusal(stranger, tagged())
        assert isinstance(error, openai.AuthenticationError)
        assert (error.type, error.code) == ("authentication_error", "invalid_api_key")
        batch_only = stranger.with_options(api_key=server.keys.create("b", ("batch",)).text)
        customer = stranger.with_options(api_key=server.keys.create("a", ("apply",)).text)
        deadline = time.monotonic() + WAIT_S
        while isinstance(error := refusal(batch_only, tagged()), openai.AuthenticationError):
            assert time.monotonic() < deadline
        assert isinstance(error, openai.PermissionDeniedError)
        assert (error.type, error.code) == ("permission_error", "missing_scope")
        for _ in range(2):
            assert complete(customer, tagged()).choices[0].message.content == MERGED
        error = refusal(customer, tagged())
        assert isinstance(error, openai.RateLimitError)
        assert error.code == "rate_limit_exceeded"


def test_a_server_that_is_loading_says_so(oracle: OracleService) -> None:
    may_load = threading.Event()

    def load_later() -> LoadedModel:
        may_load.wait(WAIT_S)
        return oracle.load()

    service = ApplyService(
        load_later,
        model_name=MODEL_NAME,
        limits=oracle.limits,
        default_deadline_s=0.5,
        drain_s=5.0,
        default_use_model="always",
    )
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        # The plan is kept, so that the deadline ends the wait and not the work on the text.
        edit = {"original": ORIGINAL, "update": UPDATE, "instruction": "Edit it."}
        now = {"use_model": "never", "deadline_s": WAIT_S}
        assert client.post("/v1/apply", json=edit | now).status_code == 200
        body = {"messages": tagged()}
        response = client.post("/v1/chat/completions", json=body)
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        assert response.json()["error"]["code"] == "not_ready"
        assert client.get("/v1/models").json()["data"] == []
        assert client.get("/v1/models/auto").json()["error"]["type"] == "server_error"
        may_load.set()
