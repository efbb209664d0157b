"""A question and its answer: choices come with a doubt, and any server knows what an id means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient
from oracle_service import OracleService
from tagged_edit import tagged

from apply_service.http.app import create_app
from apply_service.http.compat.settings import CompatSettings

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
LOCKED = "class A:\n    def close(self):\n        self.flush()\n        self.fd.close()\n\n"
LOCKED += "    def flush(self):\n        self.fd.flush()\n"
MEANT = FILE[:-23] + "        log(self)\n        self.fd = None\n"
# A body for each address, and how the text of its answer is found.
BODIES: dict[str, dict[str, Any]] = {
    "/v1/apply": {"original": FILE, "update": UPDATE, "language": "python"},
    "/v1/chat/completions": {"model": "auto", "messages": tagged(FILE, UPDATE)},
    "/v1/responses": {"model": "auto", "input": tagged(FILE, UPDATE)},
    "/v1/messages": {"model": "auto", "max_tokens": 99, "messages": tagged(FILE, UPDATE)},
    "/v1/code/apply": {"initial_code": FILE, "edit_snippet": UPDATE},
}


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[TestClient[Any]]:
    yield from serving(tiny_model_dir)


@pytest.fixture(scope="module")
def replica(tiny_model_dir: Path) -> Iterator[TestClient[Any]]:
    yield from serving(tiny_model_dir)


def serving(model_dir: Path) -> Iterator[TestClient[Any]]:
    service = OracleService(model_dir).service
    service.default_use_model = "never"
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        yield client


def text_of(path: str, answer: dict[str, Any]) -> str:
    if path == "/v1/chat/completions":
        return str(answer["choices"][0]["message"]["content"])
    if path == "/v1/responses":
        return str(answer["output"][0]["content"][0]["text"])
    if path == "/v1/messages":
        return str(answer["content"][0]["text"])
    return str(answer["merged" if path == "/v1/apply" else "mergedCode"])


def choices_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices of an answer or an error of any address."""
    error = answer.get("error")
    found = error["choices"] if isinstance(error, dict) else answer["choices"]
    assert isinstance(found, list)
    return found


def ask(client: TestClient[Any], path: str, **changes: object) -> tuple[int, dict[str, Any]]:
    response = client.post(path, json={**BODIES[path], **changes})
    return response.status_code, response.json()


@pytest.mark.parametrize("path", BODIES)
def test_one_server_asks_and_another_one_knows_the_answer(
    client: TestClient[Any], replica: TestClient[Any], path: str
) -> None:
    status, question = ask(client, path)
    assert status == (200 if path == "/v1/apply" else 422)
    choices = choices_of(question)
    assert 2 <= len(choices) <= 5
    for server in (replica, client):
        texts = []
        for choice in choices:
            status, answer = ask(server, path, resolve=choice["id"])
            assert status == 200
            texts.append(text_of(path, answer))
        assert MEANT in texts
        assert len(set(texts)) == len(texts)


def test_a_resolved_edit_is_applied_and_has_nothing_left_to_ask(client: TestClient[Any]) -> None:
    _, question = ask(client, "/v1/apply")
    assert question["status"] == "needs_review"
    first = question["choices"][0]
    assert set(first) == {
        "id",
        "diff",
        "diff_lines_left_out",
        "where",
        "probability",
        "reason",
    }
    assert first["where"] == {"symbol": "A.close", "start_line": 3, "end_line": 3}
    _, answer = ask(client, "/v1/apply", resolve=first["id"])
    assert (answer["status"], answer["source"]) == ("applied", "resolved")
    assert (answer["findings"], answer["choices"], answer["confidence"]) == ([], [], None)
    assert answer["usage"]["completion_tokens"] == 0


def test_a_stream_ends_with_the_choices(client: TestClient[Any]) -> None:
    _, question = ask(client, "/v1/apply")
    response = client.post("/v1/apply", json={**BODIES["/v1/apply"], "stream": True})
    last = json.loads(response.text.strip().rpartition("data: ")[2])
    assert last["choices"] == question["choices"]


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("change", ["another id", "another update", "another file"])
def test_an_id_of_another_edit_is_409_with_fresh_choices(
    client: TestClient[Any], path: str, change: str
) -> None:
    chosen = choices_of(ask(client, path)[1])[0]["id"]
    body = json.dumps({**BODIES[path], "resolve": chosen})
    if change == "another id":
        body = body.replace(chosen, chosen[::-1])
    elif change == "another update":
        body = body.replace("log(self)", "tell(self)")
    else:
        body = body.replace("class B", "class C")
    response = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 409
    fresh = choices_of(response.json())[0]["id"]
    assert fresh != chosen or change == "another id"
    retried = json.loads(body) | {"resolve": fresh}
    assert client.post(path, json=retried).status_code == 200


@pytest.mark.parametrize("path", [path for path in BODIES if path != "/v1/apply"])
def test_a_client_that_shows_the_message_alone_can_answer(
    client: TestClient[Any], path: str
) -> None:
    _, question = ask(client, path)
    error = question["error"]
    message = error if isinstance(error, str) else error["message"]
    for choice in choices_of(question):
        assert f"choice {choice['id']} (" in message
        assert choice["reason"] in message
    assert "`resolve`" in message


def test_lines_left_out_without_a_word_are_kept_or_removed_as_any_server_is_told(
    client: TestClient[Any], replica: TestClient[Any]
) -> None:
    body = {
        "original": LOCKED,
        "update": "# ...\n    def close(self):\n        self.fd.close()\n"
        "        self.fd = None\n# ...\n",
        "path": "a.py",
    }
    question = client.post("/v1/apply", json=body).json()
    assert question["status"] == "needs_review"
    texts = {}
    for choice in question["choices"][:2]:
        assert "`self.flush()` (line 3 in A.close), which the update leaves" in choice["reason"]
        assert choice["where"] == {"symbol": "A.close", "start_line": 3, "end_line": 3}
        answer = replica.post("/v1/apply", json={**body, "resolve": choice["id"]}).json()
        assert (answer["status"], answer["source"]) == ("applied", "resolved")
        texts[choice["reason"].split()[1]] = answer["merged"]
    assert texts["keeps"].replace("        self.flush()\n", "") == texts["removes"]
    assert "self.fd = None" in texts["removes"]
    changed = {**body, "instruction": "Forget it", "resolve": question["choices"][1]["id"]}
    assert client.post("/v1/apply", json=changed).status_code == 409


def test_an_update_without_a_place_is_refused_with_choices(client: TestClient[Any]) -> None:
    update = "        self.fd = open_again()\n"
    status, problem = ask(client, "/v1/apply", update=update)
    assert (status, problem["code"]) == (422, "no-marker")
    status, answer = ask(client, "/v1/apply", update=update, resolve=problem["choices"][0]["id"])
    assert (status, answer["status"]) == (200, "applied")
    assert "open_again" in answer["merged"]
    assert ask(client, "/v1/apply", update=update)[0] == 422, "a choice changes no later answer"


def test_doubt_ends_as_the_request_or_the_server_says(tiny_model_dir: Path) -> None:
    service = OracleService(tiny_model_dir).service
    service.default_use_model, service.default_on_doubt = "never", "refuse"
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        status, problem = ask(client, "/v1/apply")
        assert (status, problem["code"]) == (422, "rejected")
        assert "likeliest merge" in problem["detail"]
        assert ask(client, "/v1/code/apply")[0] == 422
        status, answer = ask(client, "/v1/apply", on_doubt="best")
        assert (status, answer["status"], answer["choices"]) == (200, "applied", [])
        assert answer["confidence"] < 0.8
        _, answer = ask(client, "/v1/apply", on_doubt="ask")
        assert (answer["status"], len(answer["choices"]) > 1) == ("needs_review", True)
        status, problem = ask(client, "/v1/apply", on_doubt="guess")
        assert (status, problem["field"]) == (400, "on_doubt")


def test_results_in_doubt_that_are_accepted_say_what_else_there_is(tiny_model_dir: Path) -> None:
    service = OracleService(tiny_model_dir).service
    service.default_use_model = "never"
    service.compat = replace(CompatSettings(), review="accept")
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        status, answer = ask(client, "/v1/chat/completions")
        assert (status, answer["apply"]["status"]) == (200, "needs_review")
        choices = answer["apply"]["choices"]
        assert len(choices) > 1
        status, answer = ask(client, "/v1/chat/completions", resolve=choices[1]["id"])
        assert (status, answer["apply"]["status"]) == (200, "applied")
        assert answer["apply"]["choices"] == []


@given(resolve=st.text(max_size=80) | st.integers() | st.lists(st.text(), max_size=2))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@pytest.mark.parametrize("path", BODIES)
def test_no_id_breaks_the_server(client: TestClient[Any], path: str, resolve: object) -> None:
    status, _ = ask(client, path, resolve=resolve)
    is_id = isinstance(resolve, str) and 1 <= len(resolve) <= 64
    assert status == (409 if is_id else 400)
