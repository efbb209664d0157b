"""Plain chat with OpenAI's own client and a real engine: a random model, asked in every way."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion
from pipeline_session import make_edit, make_plan
from server_thread import serving
from tagged_edit import MERGED, UPDATE, tagged

from apply_service.apply.conclusion import choices_of
from apply_service.apply.judge.answer_form import FORMS
from apply_service.apply.judge.judge import Judge
from apply_service.apply.judge.reply import read_letter
from apply_service.apply.judge.word import Word
from apply_service.apply.remote.endpoint import JUDGE, RemoteEndpoint
from apply_service.apply.remote.server import RemoteTerms
from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from apply_service.service import ApplyService

WAIT_S = 60.0
MESSAGES: list[Any] = [
    {"role": "developer", "content": "Be short."},
    {"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "it"}]},
]


TWICE = "a = 1\nb = 2\na = 1\nc = 3\n"
DOUBTFUL = make_edit(TWICE, "# ...\na = 1\nd = 4\n# ...\n")
CHOICES = choices_of(make_plan(DOUBTFUL))


def say_nothing(_stage: str) -> None:
    """Loading a tiny model has no stages worth telling."""


def make_service(model_dir: Path) -> ApplyService:
    settings = Settings(
        model=str(model_dir), profile="chat", threads=1, kv_memory=8 << 20, device="cpu"
    )
    return ApplyService(
        partial(load_served_model, settings, report=say_nothing),
        model_name=model_dir.name,
        limits=PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64),
        default_deadline_s=WAIT_S,
        drain_s=5.0,
    )


@pytest.fixture(scope="module")
def service(tiny_model_dir: Path) -> ApplyService:
    return make_service(tiny_model_dir)


@pytest.fixture(scope="module")
def url(service: ApplyService) -> Iterator[str]:
    with serving(service) as url:
        yield url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        yield client


def chat(client: openai.OpenAI, **options: Any) -> ChatCompletion:
    options = {"model": "auto", "messages": MESSAGES, "max_tokens": 24, "temperature": 0} | options
    answer = client.chat.completions.create(**options)
    assert isinstance(answer, ChatCompletion)
    return answer


def text_of(answer: ChatCompletion) -> str:
    return answer.choices[0].message.content or ""


def test_an_answer_has_its_length_and_no_verdict(client: openai.OpenAI) -> None:
    answer = chat(client)
    assert answer.usage is not None
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (24, "length")
    assert text_of(answer)
    assert "apply" not in answer.model_dump()
    assert answer.choices[0].logprobs is None
    assert (
        text_of(chat(client, max_tokens=8))
        == text_of(answer)[: len(text_of(chat(client, max_tokens=8)))]
    )
    assert chat(client, max_completion_tokens=5).usage.completion_tokens == 5  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.9, "seed": 5},
        {"temperature": 0.9, "top_p": 0.8, "seed": 5, "extra_body": {"top_k": 20}},
        {"logprobs": True},
        {"prediction": {"type": "content", "content": "KQ and more of it"}},
        {"logprobs": True, "temperature": 0.7, "seed": 1},
    ],
)
def test_a_stream_says_the_same(client: openai.OpenAI, options: dict[str, Any]) -> None:
    whole = chat(client, **options)
    arguments = {"model": "auto", "messages": MESSAGES, "max_tokens": 24, "temperature": 0}
    chunks: list[Any] = list(
        client.chat.completions.create(
            **(arguments | options),  # type: ignore[arg-type]
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    *pieces, end, usage = chunks
    assert "".join(piece.choices[0].delta.content for piece in pieces) == text_of(whole)
    assert end.choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert usage.usage.completion_tokens == 24
    assert len({piece.id for piece in chunks}) == 1
    if "logprobs" in options:
        first, *others = (piece.choices[0].logprobs for piece in pieces)
        assert first is None, "it only says whose the answer is"
        streamed = [token for logprobs in others for token in logprobs.content]
        assert whole.choices[0].logprobs is not None
        tokens = whole.choices[0].logprobs.content or []
        assert [token.token for token in streamed] == [token.token for token in tokens]
        assert [token.logprob for token in streamed] == pytest.approx(
            [token.logprob for token in tokens], abs=1e-3
        )


def test_draws_follow_their_seed(client: openai.OpenAI) -> None:
    def draw(**options: Any) -> str:
        return text_of(chat(client, temperature=1.0, **options))

    assert draw(seed=7) == draw(seed=7)
    assert draw(seed=-7) == draw(seed=-7)
    assert len({draw(seed=seed) for seed in range(4)}) == 4
    assert len({draw() for _ in range(4)}) == 4, "without a seed each draw is a new one"
    assert draw(top_p=0) == text_of(chat(client)), "nothing is left but the likeliest token"


def test_an_answer_ends_before_a_stop_text(client: openai.OpenAI) -> None:
    whole = chat(client)
    text = text_of(whole)
    places = [place for place in range(2, len(text) - 3) if "\ufffd" not in text[place : place + 2]]
    stop = text[places[0] : places[0] + 2]
    expected = text[: text.find(stop)]
    for options in ({"stop": stop}, {"stop": ["never said", stop]}):
        answer = chat(client, **options)
        assert text_of(answer) == expected
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert answer.usage.completion_tokens < 24
    chunks = client.chat.completions.create(
        model="auto", messages=MESSAGES, max_tokens=24, temperature=0, stop=stop, stream=True
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == expected


def test_a_prediction_changes_nothing_but_the_usage(client: openai.OpenAI) -> None:
    text = text_of(chat(client))
    for content in (text, [{"type": "text", "text": text}], "quite another text"):
        answer = chat(client, prediction={"type": "content", "content": content})
        assert text_of(answer) == text
        assert answer.usage is not None
        details = answer.usage.completion_tokens_details
        assert details is not None
        accepted = details.accepted_prediction_tokens or 0
        rejected = details.rejected_prediction_tokens or 0
        num_predicted = len((content if isinstance(content, str) else text).encode())
        assert accepted + rejected == num_predicted, "the tiny model has a token for each byte"
        assert accepted <= answer.usage.completion_tokens
    plain = chat(client).usage
    assert plain is not None
    assert plain.completion_tokens_details is not None
    assert plain.completion_tokens_details.rejected_prediction_tokens == 0


def test_logprobs_are_of_every_token(client: openai.OpenAI) -> None:
    answer = chat(client, logprobs=True)
    assert answer.choices[0].logprobs is not None
    tokens = answer.choices[0].logprobs.content or []
    written = bytes(byte for token in tokens for byte in token.bytes or [])
    assert written.decode("utf-8", "replace") == text_of(answer)
    assert all(token.logprob < 0 for token in tokens)
    with pytest.raises(openai.BadRequestError, match="top_logprobs"):
        chat(client, logprobs=True, top_logprobs=2)


def test_a_prompt_without_room_is_refused(client: openai.OpenAI) -> None:
    long = [{"role": "user", "content": "x" * 5000}]
    with pytest.raises(openai.APIStatusError) as caught:
        chat(client, messages=long)
    assert (caught.value.status_code, caught.value.code) == (413, "context_length_exceeded")
    assert chat(client, max_tokens=100_000, stop=[text_of(chat(client))[:1]]).choices


def test_an_edit_is_still_an_edit(
    client: openai.OpenAI, service: ApplyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "default_use_model", "never")
    answer = chat(client, messages=tagged())
    assert text_of(answer) == MERGED
    assert answer.model_dump()["apply"]["status"] == "applied"
    talk = [{"role": "user", "content": f"What does <update>{UPDATE}</update> do?"}]
    assert "apply" not in chat(client, messages=talk).model_dump()


def test_a_chat_is_counted(client: openai.OpenAI, url: str) -> None:
    def num_chats() -> int:
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        name = "apply_request_generation_tokens_count "
        return round(float(next(line for line in lines if line.startswith(name)).split()[1]))

    before = num_chats()
    chat(client)
    assert num_chats() == before + 1


def test_an_error_within_a_stream_is_one_to_the_client(
    client: openai.OpenAI, service: ApplyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first byte is out when the deadline passes, so it can only be an event."""
    monkeypatch.setattr(service, "_default_deadline_s", 0.4)
    stream = client.chat.completions.create(
        model="auto", messages=MESSAGES, temperature=0, max_tokens=4000, stream=True
    )
    with pytest.raises(openai.APIError, match="deadline") as caught:
        list(stream)
    assert caught.value.code == "deadline_exceeded"


def test_the_newer_api_says_the_same(client: openai.OpenAI) -> None:
    whole = chat(client)
    answer = client.responses.create(
        model="auto", instructions="Be short.", input="Say it", temperature=0, max_output_tokens=24
    )
    assert answer.output_text == text_of(whole)
    assert (answer.status, answer.output[0].status) == ("incomplete", "incomplete")
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert (answer.usage and answer.usage.output_tokens) == 24
    assert "apply" not in answer.model_dump()
    events = list(
        client.responses.create(
            model="auto",
            instructions="Be short.",
            input=[{"role": "user", "content": "Say it"}],
            temperature=0,
            max_output_tokens=24,
            include=["message.output_text.logprobs"],
            stream=True,
        )
    )
    *_, last = events
    assert last.type == "response.incomplete"
    assert last.response.output_text == answer.output_text
    tokens = [
        token
        for event in events
        if event.type == "response.output_text.delta"
        for token in event.logprobs
    ]
    part = last.response.output[0].content[0]  # type: ignore[union-attr, index]
    assert [token.token for token in part.logprobs or []] == [token.token for token in tokens]  # type: ignore[union-attr]
    assert "".join(token.token for token in tokens)


def test_an_error_within_a_stream_of_the_newer_api_ends_it_as_failed(
    client: openai.OpenAI, service: ApplyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_default_deadline_s", 0.4)
    events = list(
        client.responses.create(
            model="auto", input="Say it", temperature=0, max_output_tokens=4000, stream=True
        )
    )
    last = events[-1]
    assert last.type == "response.failed"
    assert (last.response.status, last.response.usage) == ("failed", None)
    assert last.response.error is not None
    assert last.response.error.code == "server_error"
    assert "deadline" in last.response.error.message
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert last.response.output_text == "".join(pieces)
    assert last.sequence_number == len(events) - 1


def test_a_client_that_leaves_a_stream_ends_it(
    client: openai.OpenAI, service: ApplyService
) -> None:
    engine = service.served.engine
    num_cancelled = engine.stats().cancelled
    with client.chat.completions.create(
        model="auto", messages=MESSAGES, temperature=0, max_tokens=4000, stream=True
    ) as stream:
        next(stream)
    deadline = time.monotonic() + WAIT_S
    while engine.stats().cancelled == num_cancelled:
        assert time.monotonic() < deadline, engine.stats()
        time.sleep(0.01)
    assert engine.stats().num_running == engine.stats().num_waiting == 0


def test_messages_that_the_template_refuses_are_the_caller_s_mistake(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    """As of models that were trained without system messages."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_model_dir, folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    refusal = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    settings["chat_template"] = refusal + settings["chat_template"]
    path.write_text(json.dumps(settings))
    with (
        serving(make_service(folder)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError, match="no system") as caught:
            chat(client)
        assert caught.value.param == "messages"
        assert text_of(chat(client, messages=MESSAGES[1:]))


def test_this_server_may_be_the_judge_of_another(url: str) -> None:
    """It is asked as text, with the probability of what it wrote and of nothing else."""
    heard: list[str] = []

    async def ask() -> tuple[str, Word | None]:
        terms = RemoteTerms(accuracy=0.9, timeout_s=WAIT_S)
        judge = Judge(
            RemoteEndpoint(url, role=JUDGE), terms, observe=lambda result, _s: heard.append(result)
        )
        try:
            return await judge.meet(), await judge.ask(DOUBTFUL, CHOICES)
        finally:
            await judge.close()

    form, word = asyncio.run(ask())
    assert form == "text"
    # A random model writes no letter, which is no word and no error.
    assert (word, heard) == (None, ["unreadable"])
    body = {"messages": MESSAGES, "logprobs": True, "max_tokens": 4, "temperature": 0}
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=WAIT_S)
    token = answer.json()["choices"][0]["logprobs"]["content"][0]
    said = json.dumps(
        {
            "choices": [
                {"message": {"content": "A"}, "logprobs": {"content": [token | {"token": "A"}]}}
            ]
        }
    )
    text = next(one for one in FORMS if one.name == "text")
    letter = read_letter(said.encode(), text, ("A", "B"))
    assert letter is not None
    assert letter.margin is not None, "its figures are understood"
