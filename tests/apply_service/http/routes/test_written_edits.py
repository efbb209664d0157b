"""A server with a writer: it writes on every route, and a bad one harms none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from oracle_service import OracleService
from tagged_edit import tagged
from writer_server import WriterServer, writer_server

from apply_service.http.app import create_app

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
MEANT = FILE[:-23] + "        log(self)\n        self.fd = None\n"
BODY: dict[str, Any] = {"original": FILE, "update": UPDATE, "language": "python"}
Client = TestClient[Any]


def in_b(_body: dict[str, Any], ways: Sequence[str] | None) -> str:
    assert ways is not None
    return next(way for way in ways if "log(self)" in way.partition("class B")[2])


@pytest.fixture
def writer() -> Iterator[WriterServer]:
    with writer_server("llama.cpp", in_b) as server:
        yield server


@contextmanager
def served(model_dir: Path, writer_url: str | None) -> Iterator[Client]:
    service = OracleService(model_dir, writer_url=writer_url).service
    service.default_use_model = "auto"
    service.auto_use_model = "never" if writer_url is None else "auto"
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        yield client


@pytest.fixture
def client(tiny_model_dir: Path, writer: WriterServer) -> Iterator[Client]:
    with served(tiny_model_dir, writer.url) as client:
        yield client


def apply(client: Client, **changes: object) -> dict[str, Any]:
    response = client.post("/v1/apply", json={**BODY, **changes})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_the_answer_is_the_writers(client: Client) -> None:
    answer = apply(client)
    assert (answer["status"], answer["source"], answer["merged"]) == ("applied", "writer", MEANT)
    assert answer["confidence"] > 0.78
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (9, 1)
    metrics = client.get("/metrics").text
    assert 'apply_answers_total{source="writer"} 1.0' in metrics
    assert 'apply_writer_answers_total{result="bound"} 1.0' in metrics


def test_every_route_has_the_writer(client: Client) -> None:
    stream = client.post("/v1/apply", json={**BODY, "stream": True})
    events = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data")]
    assert (events[-1]["source"], events[-1]["merged"]) == ("writer", MEANT)
    assert any("log(self)" in event.get("text", "") for event in events)
    lines = "".join(json.dumps({"id": str(number), **BODY}) + "\n" for number in range(3))
    batch = client.post("/v1/batches", content=lines)
    answers = [json.loads(line)["result"] for line in batch.text.splitlines()]
    assert [one["merged"] for one in answers] == [MEANT] * 3
    chat = client.post(
        "/v1/chat/completions", json={"model": "auto", "messages": tagged(FILE, UPDATE)}
    )
    assert MEANT.strip() in chat.json()["choices"][0]["message"]["content"]
    code = client.post("/v1/code/apply", json={"initial_code": FILE, "edit_snippet": UPDATE})
    assert code.json()["mergedCode"] == MEANT


def test_who_wants_no_model_sends_nothing(client: Client, writer: WriterServer) -> None:
    assert apply(client, use_model="never")["status"] == "needs_review"
    form = {"old_string": "        self.fd = None\n", "new_string": "        self.fd = 0\n"}
    assert apply(client, update=form)["status"] == "needs_review"
    assert writer.bodies == []


def test_a_writer_that_is_down_is_as_if_there_were_none(
    tiny_model_dir: Path, writer: WriterServer, client: Client
) -> None:
    with served(tiny_model_dir, None) as alone:
        wanted = question_of(apply(alone))
    writer.spoil = lambda body: (503, b"")
    assert question_of(apply(client)) == wanted
    assert 'apply_writer_answers_total{result="failed"} 1.0' in client.get("/metrics").text


def question_of(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["status"] == "needs_review"
    names = ("merged", "diff", "choices", "findings", "confidence", "source")
    return {name: answer[name] for name in names}
