"""A judge against servers of recorded shapes: what it hears, and what it never lets out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from judge_server import JudgeServer, Kind, judge_server, options_of
from pipeline_session import make_edit, make_plan

from apply_service.apply.conclusion import choices_of
from apply_service.apply.judge.answer_form import FORMS
from apply_service.apply.judge.judge import MIN_MARGIN, Judge
from apply_service.apply.judge.question import MAX_UPDATE_CHARACTERS, Question
from apply_service.apply.judge.word import Word
from apply_service.apply.remote.endpoint import (
    JUDGE,
    RemoteEndpoint,
    RemoteUrlError,
    base_of,
)
from apply_service.apply.remote.server import RemoteTerms
from apply_service.config import ConfigError
from batching.request import Priority

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
EDIT = make_edit(FILE, UPDATE, path="a.py", use_model="never")
CHOICES = choices_of(make_plan(EDIT))
TERMS = RemoteTerms(accuracy=0.9, timeout_s=20.0)
IN_A, IN_B = (
    next(n for n, one in enumerate(CHOICES) if one.symbol == s) for s in ("A.close", "B.close")
)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A judge and what was observed of it."""

    judge: Judge
    server: JudgeServer
    clock: Clock
    results: list[str] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)

    async def ask(self, **options: Any) -> Word | None:
        return await self.judge.ask(options.pop("edit", EDIT), CHOICES, **options)

    def observe(self, result: str, seconds: float | None) -> None:
        self.results.append(result)
        self.seconds.append(seconds)


def run(
    server: JudgeServer, scenario: Callable[[Bench], Coroutine[Any, Any, None]], **options: Any
) -> Bench:
    """Run a scenario with a judge at a server; the judge is closed at the end."""
    clock = Clock()
    url, key = options.pop("url", server.url), options.pop("api_key", None)
    terms = options.pop("terms", TERMS)
    bench: Bench

    async def whole() -> None:
        nonlocal bench
        judge = Judge(
            RemoteEndpoint(url, api_key=key, role=JUDGE),
            terms,
            observe=lambda result, seconds: bench.observe(result, seconds),
            clock=clock,
            **options,
        )
        bench = Bench(judge, server, clock)
        try:
            await scenario(bench)
        finally:
            await judge.close()

    asyncio.run(whole())
    return bench


@pytest.fixture
def plain() -> Iterator[JudgeServer]:
    with judge_server("plain") as server:
        server.names("in B.close")
        yield server


@pytest.fixture
def bound() -> Iterator[JudgeServer]:
    with judge_server("vllm") as server:
        server.names("in B.close")
        yield server


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("vllm", "choice"),
        ("llama.cpp", "grammar"),
        ("llama-cpp-python", "grammar"),
        ("openai", "json_schema"),
        ("ollama", "json_schema"),
        ("plain", "text"),
    ],
)
def test_each_kind_of_server_is_asked_in_its_own_form(kind: Kind, form: str) -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.judge.meet() == form
        num_rehearsals = len(server.bodies)
        for needle, number in (("in A.close", IN_A), ("in B.close", IN_B), ("nothing", None)):
            server.names(needle)
            word = await bench.ask()
            assert word is not None
            assert (word.number, word.model, word.accuracy) == (number, "first-model", 0.9)
        assert len(server.bodies) == num_rehearsals + 3, "tried once, and each asked once"

    with judge_server(kind) as server:
        bench = run(server, scenario)
    assert sorted(bench.results) == ["agreed", "none", "other"]
    assert all(seconds is not None for seconds in bench.seconds)


def test_the_name_of_a_servers_model_is_sent_whole_and_shown_in_short(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "judge\x1b[2J\n" + "x" * 10_000

    async def scenario(bench: Bench) -> None:
        word = await bench.ask()
        assert word is not None
        assert word.model.startswith("judge\\x1b[2J\\nxxx")
        assert len(word.model) == 200

    with judge_server("vllm", model=name) as server, caplog.at_level("INFO"):
        run(server, scenario)
    assert {body["model"] for body in server.bodies} == {name}
    (line,) = [one.getMessage() for one in caplog.records if "answers in" in one.getMessage()]
    assert line.isprintable()
    assert len(line) < 300


@pytest.mark.parametrize("name", ["json_schema", "json_object", "grammar"])
def test_forms_of_llama_cpp_can_be_named(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        word = await bench.ask()
        assert word is not None
        assert word.number == IN_B

    with judge_server("llama.cpp") as server:
        server.names("in B.close")
        run(server, scenario, forms=[form for form in FORMS if form.name == name])


def test_order_is_a_hash_and_turned_where_the_margin_is_small(bound: JudgeServer) -> None:
    bound.sureness = 0.6

    async def scenario(bench: Bench) -> None:
        word = await bench.ask()
        assert word is not None
        assert word.number == IN_B

    run(bound, scenario)
    first, second = (list(options_of(body).values()) for body in bound.questions)
    assert first[:-1] == second[:-1][::-1]
    assert first[-1] == second[-1] == "None of these is what the author meant.\n"
    ids = [CHOICES[number].id for number in Question.of(EDIT, CHOICES).order]
    assert ids == sorted(ids)


@pytest.mark.parametrize("has_logprobs", [True, False])
def test_a_judge_that_always_takes_the_first_option_says_nothing(
    bound: JudgeServer, has_logprobs: bool
) -> None:
    bound.sureness, bound.has_logprobs = 0.5 + MIN_MARGIN / 4, has_logprobs
    bound.decide = lambda options: next(iter(options))

    async def scenario(bench: Bench) -> None:
        assert await bench.ask() is None

    assert run(bound, scenario).results == ["undecided"]
    assert len(bound.questions) == 2


def test_key_and_model_are_sent_and_the_model_is_not_looked_up(bound: JudgeServer) -> None:
    async def scenario(bench: Bench) -> None:
        word = await bench.ask()
        assert word is not None
        assert word.model == "judge-7b"

    run(bound, scenario, api_key=" secret-key \n", model="judge-7b")
    assert set(bound.keys) == {"Bearer secret-key"}
    assert {body["model"] for body in bound.bodies} == {"judge-7b"}


def chat(content: object) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


@pytest.mark.parametrize(
    ("spoil", "result"),
    [
        (lambda _: chat("Sure! The answer is B, because B.close holds the file."), "unreadable"),
        (lambda _: chat("D"), "unreadable"),
        (lambda _: chat(None), "unreadable"),
        (lambda _: chat({"answer": "A"}), "unreadable"),
        (lambda _: b"<html>A</html>", "unreadable"),
        (lambda _: b"", "unreadable"),
        (lambda content: content[:-20], "unreadable"),
        (lambda _: chat("A" * JUDGE.max_reply_bytes), "failed"),
    ],
    ids=["talkative", "unknown letter", "silent", "other type", "html", "empty", "cut", "endless"],
)
@pytest.mark.parametrize("kind", ["vllm", "plain"])
def test_what_is_no_letter_is_no_word(
    kind: Kind, spoil: Callable[[bytes], bytes], result: str
) -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.ask() is None

    with judge_server(kind) as server:
        server.spoil = spoil
        assert run(server, scenario).results == [result]


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (400, "refused"),
        (500, "refused"),
        (401, "failed"),
        (404, "failed"),
        (503, "failed"),
        (302, "failed"),
    ],
)
def test_a_status_that_is_no_answer_is_no_word(
    bound: JudgeServer, status: int, result: str
) -> None:
    bound.status = status

    async def scenario(bench: Bench) -> None:
        assert await bench.ask() is None

    assert run(bound, scenario).results == [result]


def test_a_server_that_is_killed_is_left_alone_and_tried_again_when_it_is_back() -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.ask() is not None
        bench.server.status = 503
        for _ in range(4):
            assert await bench.ask() is None
        assert bench.results[1:] == ["failed", "failed", "failed", "paused"]
        num_asked = len(bench.server.bodies)
        bench.clock.now += 1.0
        assert await bench.ask() is None, "one trial, which fails"
        assert await bench.ask() is None
        assert bench.results[5:] == ["failed", "paused"]
        bench.server.status = 200
        bench.server.kind = "llama.cpp"  # another engine has taken its place
        bench.clock.now += 60.0
        assert await bench.ask() is not None
        assert len(bench.server.bodies) > num_asked + 2
        assert await bench.ask() is not None

    with judge_server("vllm") as server:
        bench = run(server, scenario)
    assert bench.results[-2:] == ["agreed", "agreed"] or bench.results[-2:] == ["other", "other"]


def test_nobody_listens_there(bound: JudgeServer) -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.ask() is None

    with judge_server("vllm") as gone:
        pass
    assert run(bound, scenario, url=gone.url).results == ["failed"]


def test_a_slow_server_costs_no_more_than_the_time_that_an_edit_has(bound: JudgeServer) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.judge.meet()
        bound.gate.clear()
        for _ in range(5):
            assert await bench.ask(left_s=0.06) is None
        assert await bench.ask(left_s=0.01) is None, "not asked at all"
        bound.gate.set()
        assert await bench.ask(left_s=30.0) is not None, "that was no fault of the judge"

    bench = run(bound, scenario)
    assert bench.results[:-1] == ["timeout"] * 6
    assert [seconds is None for seconds in bench.seconds] == [False] * 5 + [True, False]


def test_a_server_that_hangs_costs_its_own_limit_and_then_nothing(bound: JudgeServer) -> None:
    bound.gate.clear()

    async def scenario(bench: Bench) -> None:
        for _ in range(4):
            assert await bench.ask(left_s=30.0) is None

    bench = run(bound, scenario, terms=replace(TERMS, timeout_s=0.1))
    assert bench.results == ["timeout"] * 3 + ["paused"]


def test_a_slow_rehearsal_is_waited_for_and_not_begun_anew(bound: JudgeServer) -> None:
    async def scenario(bench: Bench) -> None:
        bound.gate.clear()
        waiting = [asyncio.create_task(bench.ask()) for _ in range(3)]
        while not bound.bodies:
            await asyncio.sleep(0.005)
        bound.gate.set()
        words = await asyncio.gather(*waiting)
        assert all(word is not None for word in words)

    run(bound, scenario)
    assert len(bound.bodies) - len(bound.questions) == 1


def test_a_budget_is_kept_and_batches_leave_half_of_it(bound: JudgeServer) -> None:
    batch_edit = replace(EDIT, priority=Priority.BATCH)

    async def scenario(bench: Bench) -> None:
        words = [await bench.ask(edit=batch_edit) for _ in range(3)]
        assert [word is not None for word in words] == [True, True, False]
        words = [await bench.ask() for _ in range(3)]
        assert [word is not None for word in words] == [True, True, False]
        bench.clock.now += 61.0
        assert await bench.ask() is not None

    bench = run(bound, scenario, terms=replace(TERMS, per_minute=4))
    assert bench.results.count("over_budget") == 2
    assert len(bound.questions) == 5


def test_a_caller_who_leaves_takes_the_question_along(bound: JudgeServer) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.judge.meet()
        bound.gate.clear()
        asking = asyncio.create_task(bench.ask())
        while not bound.questions:
            await asyncio.sleep(0.005)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        bound.gate.set()
        assert await bench.ask() is not None

    assert len(run(bound, scenario).results) == 1


def test_nothing_of_key_or_code_is_logged(
    bound: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="apply_service")

    async def scenario(bench: Bench) -> None:
        await bench.ask()
        bound.status = 500
        for _ in range(4):
            await bench.ask()

    run(bound, scenario, api_key="secret-key")
    bound.status = 200

    async def prepared(bench: Bench) -> None:
        bench.judge.prepare()
        assert await bench.ask() is None

    with judge_server("vllm") as gone:
        pass
    run(bound, prepared, url=gone.url)
    assert "cannot be asked yet" in caplog.text
    assert "answers in the form choice" in caplog.text
    assert "not asked for a while" in caplog.text
    assert "secret-key" not in caplog.text
    assert "log(self)" not in caplog.text


def test_long_texts_are_cut_in_the_question() -> None:
    edit = replace(EDIT, update="x" * 10 * MAX_UPDATE_CHARACTERS, instruction="y" * 50_000)
    choices = [replace(one, diff="z" * 100_000) for one in CHOICES]
    text = Question.of(edit, choices).messages[1]["content"]
    assert len(text) < 3 * MAX_UPDATE_CHARACTERS
    assert text.count("[cut]") == 2 + len(CHOICES)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
        ("https://judge.example.com/v1/chat/completions", "https://judge.example.com/v1"),
        ("https://judge.example.com/api/v3", "https://judge.example.com/api/v3"),
    ],
)
def test_an_address_may_be_written_in_several_ways(url: str, base: str) -> None:
    assert base_of(url, JUDGE) == base


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://x/v1", "http://", "http://x:port/v1", "http://x/v1?a=1"]
)
def test_what_is_no_address_is_refused_with_a_remedy(url: str) -> None:
    with pytest.raises(RemoteUrlError, match="such as http://127"):
        base_of(url, JUDGE)


def test_secrets_that_cannot_be_sent_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="APPLY_JUDGE_API_KEY") as caught:
        base_of("http://user:pa55@x/v1", JUDGE)
    assert "pa55" not in str(caught.value)
    with pytest.raises(ConfigError, match="characters that no header") as caught:
        RemoteEndpoint("http://x", api_key="pa55\u00e9", role=JUDGE)
    assert "pa55" not in str(caught.value)
