"""A writer at servers of recorded shape: what it writes, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from chat_server import REFUSAL, completion
from pipeline_session import check_items, make_edit, make_plan
from writer_server import Kind, WriterServer, writer_server

from apply_service.apply.conclusion import settle_doubt, try_conclude_alone
from apply_service.apply.event_stream import EventStream
from apply_service.apply.events import RegionText, RunEvent
from apply_service.apply.intake import Intake
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.remote.endpoint import WRITER, RemoteEndpoint
from apply_service.apply.remote.server import RemoteTerms
from apply_service.apply.run import ApplyPipeline
from apply_service.apply.writer.writer import Writer
from apply_service.apply.writer.writing import Writing
from apply_service.edit.place.merge import MIN_CERTAINTY

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
IN_B = FILE[:-23] + "        log(self)\n        self.fd = None\n"
DOUBTFUL = make_edit(FILE, UPDATE, path="a.py", use_model="auto", constraint=None)
TERMS = RemoteTerms(accuracy=0.97, timeout_s=20.0)


class NoModel:
    """A pipeline's model that is never to be asked."""

    async def model_for(self, plan: EditPlan) -> Any:
        raise AssertionError("the model was asked")


@dataclass
class Run:
    """One edit by a pipeline with a writer."""

    outcome: Outcome
    events: list[RunEvent]
    results: list[str] = field(default_factory=list)
    form: str = ""


def run(server: WriterServer, edit: Any = DOUBTFUL, **options: Any) -> Run:
    results: list[str] = []

    async def whole() -> Run:
        endpoint = RemoteEndpoint(server.url, role=WRITER)
        terms = options.pop("terms", TERMS)
        writer = Writer(endpoint, terms, observe=lambda result, _s: results.append(result))
        text_work = TextWork()
        pipeline = ApplyPipeline(
            NoModel(),
            Intake(max_file_bytes=1 << 20, text_work=text_work),
            text_work=text_work,
            writing=Writing(writer, text_work, otherwise="never"),
        )
        events = EventStream()
        try:
            form = await writer.meet()
            events.start(pipeline.apply(edit, events))
            items = [item async for item in events]
        finally:
            await writer.close()
        check_items(items)
        assert isinstance(items[-1], Outcome)
        return Run(items[-1], items[:-1], results, form)  # type: ignore[arg-type]

    return asyncio.run(whole())


def part_of(body: dict[str, Any]) -> str:
    """The part of the file that a request shows."""
    text = body["messages"][-1]["content"]
    return str(text.partition("\n<code>\n")[2].partition("</code>")[0])


def names_b(body: dict[str, Any], ways: Sequence[str] | None) -> str:
    """Write the edit in class B: the way that has it there, or freely."""
    if ways is not None:
        return next(way for way in ways if "log(self)" in way.partition("class B")[2])
    return free(body)


def free(body: dict[str, Any]) -> str:
    head, tail = part_of(body).split("class B:\n    def close(self):\n")
    written = f"{head}class B:\n    def close(self):\n        log(self)\n{tail}"
    return f"<updated-code>\n{written}</updated-code>"


def question() -> Outcome:
    plan = make_plan(replace(DOUBTFUL, use_model="never"))
    outcome = try_conclude_alone(plan)
    assert outcome is not None
    return settle_doubt(plan, outcome)


@pytest.mark.parametrize(
    ("kind", "form", "manner"),
    [
        ("vllm", "structured_outputs", "bound"),
        ("llama.cpp", "grammar", "bound"),
        ("openai", "text", "free"),
        ("thinking", "text", "free"),
        ("plain", "text", "free"),
    ],
)
def test_each_kind_of_server_writes_in_its_own_form(kind: Kind, form: str, manner: str) -> None:
    with writer_server(kind, names_b) as server:
        done = run(server)
    assert (done.form, done.results) == (form, [manner])
    outcome = done.outcome
    assert (outcome.verdict.status, outcome.source) == ("applied", "writer")
    assert outcome.merged == IN_B
    assert outcome.confidence is not None
    assert MIN_CERTAINTY <= outcome.confidence < 1
    assert outcome.choices == ()
    shown = "".join(event.text for event in done.events if isinstance(event, RegionText))
    assert "log(self)" in shown
    assert (outcome.stats.num_prompt_tokens, outcome.stats.num_output_tokens) == (9, 1)
    (body,) = server.bodies
    assert ("prediction" in body) == (kind == "plain")


def test_a_fence_around_the_answer_does_no_harm() -> None:
    with writer_server("plain", lambda body, _: f"```python\n{free(body)}\n```\n") as server:
        assert run(server).outcome.merged == IN_B


def test_a_writer_of_little_worth_leaves_the_question() -> None:
    with writer_server("vllm", names_b) as server:
        outcome = run(server, terms=replace(TERMS, accuracy=0.6)).outcome
    before = question()
    assert outcome.verdict.status == "needs_review"
    assert {one.id for one in outcome.choices} == {one.id for one in before.choices}


def test_a_free_text_that_is_no_merge_is_judged_and_never_silent() -> None:
    with writer_server(
        "plain", lambda body, _: free(body).replace("log(self)", "print(self)")
    ) as server:
        outcome = run(server).outcome
    assert outcome.verdict.status != "applied"
    assert outcome.choices


def chat(content: object, **options: Any) -> tuple[int, bytes]:
    return 200, json.dumps(completion({"model": "m"}, content, **options)).encode()


@pytest.mark.parametrize(
    ("spoilt", "result"),
    [
        (chat("I have merged the edit for you."), "unreadable"),
        (chat("<updated-code>\nx = 1\n"), "unreadable"),
        (chat("<updated-code>\n", finish_reason="length"), "unreadable"),
        (chat(None), "unreadable"),
        ((200, b"<html>"), "unreadable"),
        ((200, b""), "unreadable"),
        ((500, REFUSAL), "refused"),
        ((401, REFUSAL), "failed"),
        ((503, b""), "failed"),
    ],
)
@pytest.mark.parametrize("kind", ["vllm", "plain"])
def test_whatever_goes_wrong_the_edit_is_what_it_is_without_a_writer(
    kind: Kind, spoilt: tuple[int, bytes], result: str
) -> None:
    with writer_server(kind, names_b) as server:
        server.spoil = lambda body: spoilt
        done = run(server)
    before = question()
    assert done.results == [result]
    assert done.events == []
    assert replace(done.outcome, request_id="", total_s=0.0) == replace(
        before, request_id="", total_s=0.0
    )


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        ('{"prompt_tokens": 20, "completion_tokens": 3}', (20, 3)),
        ('{"prompt_tokens": 1000000, "completion_tokens": 1000000}', ("sent", "asked")),
        ('{"prompt_tokens": -5, "completion_tokens": -1}', (0, 0)),
        ('{"prompt_tokens": true, "completion_tokens": false}', (0, 0)),
        ('{"prompt_tokens": 9.5, "completion_tokens": "7"}', (0, 0)),
        ('{"prompt_tokens": 1e30, "completion_tokens": null}', (0, 0)),
        (f'{{"prompt_tokens": 1{"0" * 40}, "completion_tokens": {2**64}}}', (0, 0)),
        ("[1, 2]", (0, 0)),
        ("null", (0, 0)),
    ],
)
def test_tokens_are_believed_as_far_as_they_can_be_true(
    said: str, believed: tuple[int | str, int | str]
) -> None:
    with writer_server("plain", names_b) as server:
        plain_answer = completion({"model": "m"}, "{content}")
        server.spoil = lambda body: (
            200,
            json.dumps({**plain_answer, "usage": "{usage}"})
            .replace('"{content}"', json.dumps(free(body)))
            .replace('"{usage}"', said)
            .encode(),
        )
        outcome = run(server).outcome
    (body,) = server.bodies
    limits = {"sent": len(json.dumps(body)), "asked": body["max_tokens"]}
    counted = (outcome.stats.num_prompt_tokens, outcome.stats.num_output_tokens)
    assert outcome.merged == IN_B
    for number, wanted in zip(counted, believed, strict=True):
        if isinstance(wanted, str):
            assert 0 < number <= limits[wanted]
        else:
            assert number == wanted


def test_a_server_that_is_down_is_none() -> None:
    with writer_server("vllm", names_b) as server:
        pass
    results: list[str] = []

    async def write() -> Outcome | None:
        endpoint = RemoteEndpoint(server.url, role=WRITER)
        writer = Writer(endpoint, TERMS, observe=lambda result, _s: results.append(result))
        try:
            writing = Writing(writer, TextWork(), otherwise="never")
            return await writing.on(make_plan(DOUBTFUL), EventStream())
        finally:
            await writer.close()

    assert asyncio.run(write()) is None
    assert results == ["failed"]


def test_a_grammar_that_is_refused_is_followed_by_a_free_text() -> None:
    with writer_server("llama.cpp", names_b) as server:
        server.spoil = lambda body: (400, REFUSAL) if "grammar" in body else None
        done = run(server)
    assert done.results == ["free"]
    assert done.outcome.merged == IN_B
    assert len(server.bodies) == 2


def test_an_edit_may_ask_for_a_free_text() -> None:
    with writer_server("vllm", names_b) as server:
        done = run(server, replace(DOUBTFUL, constraint="none"))
    assert (done.results, done.outcome.merged) == (["free"], IN_B)


@pytest.mark.parametrize("use_model", ["never", "auto"])
def test_what_needs_no_model_is_not_sent(use_model: str) -> None:
    sure = "# ...\nclass B:\n    def close(self):\n        log(self)\n        self.fd = None\n"
    edit = make_edit(FILE, sure, path="a.py", use_model=use_model, constraint=None)
    with writer_server("vllm", names_b) as server:
        outcome = run(server, edit).outcome
        doubtful = run(server, replace(DOUBTFUL, use_model="never")).outcome
    assert outcome.source == "merge"
    assert doubtful.choices
    assert server.bodies == []


def test_parts_far_from_each_other_are_written_side_by_side() -> None:
    functions = [
        f"def f{n}(value):\n    total = value + {n}\n    return total\n" for n in range(80)
    ]
    file = "\n\n".join(functions)
    update = file
    for number in (3, 70):
        update = update.replace(f"value + {number}\n", f"value - {number}\n")
    parts = [
        f"def f{n}(value):\n    total = value - {n}\n    return total\n# ...\n" for n in (3, 70)
    ]
    edit = make_edit(
        file, "# ...\n" + "".join(parts), path="a.py", use_model="always", constraint=None
    )

    def write(body: dict[str, Any], _ways: object) -> str:
        text = part_of(body).replace("value + 3\n", "value - 3\n")
        return f"<updated-code>\n{text.replace('value + 70', 'value - 70')}</updated-code>"

    with writer_server("plain", write) as server:
        outcome = run(server, edit).outcome
    assert len(server.bodies) == 2
    assert (outcome.merged, outcome.verdict.status) == (update, "applied")
    assert len(outcome.regions) == 2
    assert outcome.stats.num_output_tokens == 2


def test_one_part_that_fails_leaves_all() -> None:
    def write(body: dict[str, Any], _ways: object) -> object:
        return None if "a = 1" in part_of(body) else "<updated-code>\nb = 3\n</updated-code>"

    filler = "".join(f"x{number} = {number}\n" for number in range(300))
    file = f"a = 1\n{filler}b = 2\n"
    update = "a = 4\n# ...\nx299 = 299\nb = 3\n"
    edit = make_edit(file, update, path="a.py", use_model="always", constraint="none")

    async def write_it(server: WriterServer) -> Outcome | None:
        writer = Writer(RemoteEndpoint(server.url, role=WRITER), TERMS)
        try:
            return await Writing(writer, TextWork(), otherwise="auto").on(
                make_plan(edit), EventStream()
            )
        finally:
            await writer.close()

    with writer_server("plain", write) as server:
        assert asyncio.run(write_it(server)) is None
