"""A server with a judge: doubts are settled on every route, and a bad judge harms none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, judge_server
from litestar.testing import TestClient
from oracle_service import OracleService
from tagged_edit import tagged

from apply_service.http.app import create_app

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
MEANT = FILE[:-23] + "        log(self)\n        self.fd = None\n"
BODY: dict[str, Any] = {"original": FILE, "update": UPDATE, "language": "python"}
UNPLACED = "        self.fd = open_again()\n"
Client = TestClient[Any]


@pytest.fixture(scope="module")
def shared_judge() -> Iterator[JudgeServer]:
    with judge_server("llama.cpp") as server:
        yield server


@pytest.fixture
def judge(shared_judge: JudgeServer) -> JudgeServer:
    shared_judge.names(" class B:")
    shared_judge.bodies.clear()
    return shared_judge


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path, shared_judge: JudgeServer) -> Iterator[Client]:
    with served(tiny_model_dir, shared_judge.url) as client:
        yield client


@contextmanager
def served(model_dir: Path, judge_url: str | None) -> Iterator[Client]:
    service = OracleService(model_dir, judge_url=judge_url).service
    # As with the embedded model: nobody wrote "never", and no model is asked.
    service.default_use_model = service.auto_use_model = "never"
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        yield client


def apply(client: Client, **changes: object) -> dict[str, Any]:
    response = client.post("/v1/apply", json={**BODY, **changes})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def answers_of(client: Client) -> dict[str, float]:
    """What came of the judge so far, as the metrics say."""
    lines = client.get("/metrics").text.splitlines()
    prefix = 'apply_judge_answers_total{result="'
    found = [line.removeprefix(prefix).split('"} ') for line in lines if line.startswith(prefix)]
    return {result: float(number) for result, number in found}


def test_the_answer_says_what_the_judge_chose(client: Client, judge: JudgeServer) -> None:
    before = answers_of(client)
    answer = apply(client)
    assert (answer["status"], answer["source"]) == ("applied", "judge")
    assert answer["merged"] == MEANT
    assert (answer["choices"], answer["findings"]) == ([], [])
    assert answer["confidence"] > 0.78
    said = answer["judge"]
    assert (said["model"], len(said["choice"])) == ("first-model", 16)
    assert said["seconds"] >= 0
    assert apply(client, resolve=said["choice"])["merged"] == MEANT
    after = answers_of(client)
    (result,) = {name for name in after if after[name] != before.get(name, 0)}
    assert result == "other"
    assert 'apply_answers_total{source="judge"}' in client.get("/metrics").text


def test_none_of_them_is_a_question_with_less_certainty(client: Client, judge: JudgeServer) -> None:
    unasked = apply(client, use_model="never")
    judge.names("no option has this")
    answer = apply(client)
    assert (answer["status"], answer["judge"]["choice"]) == ("needs_review", None)
    assert answer["confidence"] < unasked["confidence"]
    assert answer["merged"] == unasked["merged"]
    assert {one["id"] for one in answer["choices"]} == {one["id"] for one in unasked["choices"]}


@pytest.mark.parametrize(
    "changes",
    [
        {"use_model": "never"},
        {"on_doubt": "best"},
        {"on_doubt": "refuse", "checks": "off"},
        {"checks": "off"},
        {"update": "# ...\nclass B:\n    def close(self):\n        log(self)\n# ...\n"},
    ],
    ids=["no model", "best", "refuse", "no checks", "certain"],
)
def test_nobody_is_asked_where_there_is_no_question(
    client: Client, judge: JudgeServer, changes: dict[str, object]
) -> None:
    assert apply(client, **changes)["judge"] is None
    assert judge.questions == []


def test_streams_and_batches_have_a_judge(client: Client, judge: JudgeServer) -> None:
    response = client.post("/v1/apply", json={**BODY, "stream": True})
    last = json.loads(response.text.strip().rpartition("data: ")[2])
    assert (last["status"], last["source"], last["merged"]) == ("applied", "judge", MEANT)
    lines = "".join(json.dumps({"id": str(number), **BODY}) + "\n" for number in range(3))
    response = client.post("/v1/batches", content=lines)
    answers = [json.loads(line)["result"] for line in response.text.splitlines()]
    assert [one["source"] for one in answers] == ["judge"] * 3
    assert [one["merged"] for one in answers] == [MEANT] * 3


def test_other_services_apis_have_a_judge(client: Client, judge: JudgeServer) -> None:
    chat = client.post(
        "/v1/chat/completions", json={"model": "auto", "messages": tagged(FILE, UPDATE)}
    )
    assert chat.status_code == 200
    assert MEANT.strip() in chat.json()["choices"][0]["message"]["content"]
    code = client.post("/v1/code/apply", json={"initial_code": FILE, "edit_snippet": UPDATE})
    assert code.json()["mergedCode"] == MEANT


def test_a_form_and_an_update_without_a_place_have_a_judge(
    client: Client, judge: JudgeServer
) -> None:
    form = {"old_string": "        self.fd = None\n", "new_string": "        self.fd = 0\n"}
    judge.names("in B.close")
    answer = apply(client, update=form)
    assert (answer["source"], answer["status"]) == ("judge", "applied")
    assert answer["merged"] == FILE[:-23] + "        self.fd = 0\n"
    refused = client.post("/v1/apply", json={**BODY, "update": UNPLACED, "use_model": "never"})
    assert refused.json()["code"] == "no-marker"
    judge.names(refused.json()["choices"][0]["reason"])
    answer = apply(client, update=UNPLACED)
    assert (answer["source"], answer["status"]) == ("judge", "applied")
    assert "open_again" in answer["merged"]
    assert answer["judge"]["choice"] == refused.json()["choices"][0]["id"]


def chat(content: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


def test_a_judge_that_is_down_slow_or_mad_is_a_question_and_nothing_is_lost(
    tiny_model_dir: Path,
) -> None:
    with served(tiny_model_dir, None) as client:
        wanted = question_of(apply(client))
    with judge_server("vllm") as server, served(tiny_model_dir, server.url) as client:
        server.spoil = lambda _: chat("Sure! I would take A.")
        assert question_of(apply(client)) == wanted
        server.spoil = lambda _: chat("Q")
        assert question_of(apply(client)) == wanted
        server.spoil = None
        server.gate.clear()
        assert question_of(apply(client, deadline_s=0.9)) == wanted
        server.gate.set()
        server.status = 503
        assert question_of(apply(client)) == wanted
        found = answers_of(client)
        assert {"unreadable", "timeout", "failed"} <= found.keys()
    with served(tiny_model_dir, server.url) as client:
        assert question_of(apply(client)) == wanted, "nobody listens there any more"
        assert question_of(apply(client)) == wanted


def question_of(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["status"] == "needs_review"
    names = ("merged", "diff", "choices", "findings", "confidence", "source", "judge")
    return {name: answer[name] for name in names}
