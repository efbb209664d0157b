"""Edits whose text work does not end: they are killed at the deadline or when the client leaves."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import pytest
import text_jobs
from guarded_server import guarded
from oracle_service import MODEL_NAME, OracleService

from apply_service.apply import intake
from apply_service.apply.planning import text_work
from apply_service.apply.planning.text_work import TextWork
from apply_service.http.guard.keys.authentication import AccessRules

T = TypeVar("T")

SOON_S = 30.0
SHORT_S = 0.5
OPEN = AccessRules(is_private=False, allows_anonymous=True, metrics_need_key=False)
ORIGINAL = "def shout(path):\n    base = clean(path)\n    return base.upper()\n"
UPDATE = "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n"
ENDLESS = UPDATE.replace("base)", f"'{text_jobs.ENDLESS}')")
MERGED = ORIGINAL.replace("    return", "    print(base)\n    return")


def apply_body(update: str) -> dict[str, Any]:
    return {"original": ORIGINAL, "update": update, "path": "shout.py", "use_model": "never"}


def code_apply_body(update: str) -> dict[str, Any]:
    return {"initial_code": ORIGINAL, "edit_snippet": update}


def chat_body(update: str) -> dict[str, Any]:
    content = f"<code>{ORIGINAL}</code>\n<update>{update}</update>"
    return {"model": MODEL_NAME, "messages": [{"role": "user", "content": content}]}


def batch_body(update: str) -> dict[str, Any]:
    return {**apply_body(update), "id": "one"}


BODIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "/v1/apply": apply_body,
    "/v1/code/apply": code_apply_body,
    "/v1/chat/completions": chat_body,
    "/v1/batches": batch_body,
}
ROUTES = [*((route, False) for route in BODIES), *((route, True) for route in list(BODIES)[:3])]


class Server:
    """A live server with one process for text work, and the processes that began endless work."""

    def __init__(self, url: str, begun: Path) -> None:
        self.url = url
        self._begun = begun

    def post(self, route: str, body: dict[str, Any]) -> httpx.Response:
        return httpx.post(self.url + route, content=json.dumps(body), timeout=SOON_S)

    @contextmanager
    def asking(self, route: str, body: dict[str, Any]) -> Iterator[None]:
        """A client that has sent a request and leaves at the end of the block."""
        content, address = json.dumps(body).encode(), urlsplit(self.url)
        head = f"POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head.encode() + content)
            yield

    def readiness(self) -> httpx.Response:
        return httpx.get(f"{self.url}/health/ready", timeout=SOON_S)

    def until_begun(self) -> int:
        """The process that has begun with an endless edit."""
        return until(self.begun)[0]

    def begun(self) -> list[int]:
        """The processes that have begun with an endless edit so far."""
        return [int(path.name) for path in self._begun.glob("*")]

    def until_ended(self) -> None:
        """Nothing that has begun is left."""
        until(lambda: all(has_ended(process_id) for process_id in self.begun()))


def until(probe: Callable[[], T]) -> T:
    deadline = time.monotonic() + SOON_S
    while not (found := probe()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found


def has_ended(process_id: int) -> bool:
    return not Path(f"/proc/{process_id}").exists()


@contextmanager
def server_of(tiny_model_dir: Path, tmp_path: Path, *, deadline_s: float) -> Iterator[Server]:
    work = TextWork(num_workers=1)
    oracle = OracleService(tiny_model_dir, deadline_s=deadline_s, text_work=work)
    oracle.will_answer(MERGED.splitlines())
    with guarded(oracle.service, tmp_path, rules=OPEN) as server:
        yield Server(server.url, tmp_path / "begun")
    asyncio.run(work.close())


@pytest.fixture(params=["plan_edit", "try_conclude_alone"])
def endless(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make planning or judging endless for some edits."""
    doubles = {
        "plan_edit": text_jobs.plan_or_spin,
        "try_conclude_alone": text_jobs.conclude_or_spin,
    }
    work: Any = doubles[request.param]
    monkeypatch.setattr(intake, request.param, partial(work, tmp_path / "begun"))


planning_alone = pytest.mark.parametrize("endless", ["plan_edit"], indirect=True)


@pytest.mark.usefixtures("endless")
def test_the_deadline_ends_them_with_one_error(tiny_model_dir: Path, tmp_path: Path) -> None:
    with server_of(tiny_model_dir, tmp_path, deadline_s=SHORT_S) as server:
        for is_streamed in (False, True):
            body = {**apply_body(ENDLESS), "stream": is_streamed}
            response = server.post("/v1/apply", body)
            assert (response.status_code, response.json()["code"]) == (504, "deadline-exceeded")
        server.until_ended()
        assert server.readiness().status_code == 200


@planning_alone
@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize(("route", "is_streamed"), ROUTES)
def test_every_route_ends_them(
    tiny_model_dir: Path, tmp_path: Path, route: str, is_streamed: bool
) -> None:
    with server_of(tiny_model_dir, tmp_path, deadline_s=SHORT_S) as server:
        body = BODIES[route](ENDLESS) | ({"stream": True} if is_streamed else {})
        if route == "/v1/batches":
            body["deadline_s"] = SHORT_S
        response = server.post(route, body)
        assert response.text.count("the deadline passed during the work on the text") == 1
        if route != "/v1/batches":
            assert response.status_code == 504
        server.until_ended()
        until(lambda: "print(base)" in server.post(route, BODIES[route](UPDATE)).text)


@planning_alone
@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize(("route", "is_streamed"), ROUTES)
def test_a_client_that_leaves_ends_them(
    tiny_model_dir: Path, tmp_path: Path, route: str, is_streamed: bool
) -> None:
    with server_of(tiny_model_dir, tmp_path, deadline_s=600.0) as server:
        body = BODIES[route](ENDLESS) | ({"stream": True} if is_streamed else {})
        with server.asking(route, body):
            server.until_begun()
        server.until_ended()


@planning_alone
@pytest.mark.usefixtures("endless")
def test_a_server_that_is_stuck_is_not_ready(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_work, "MAX_WAIT_S", 0.0)
    with server_of(tiny_model_dir, tmp_path, deadline_s=600.0) as server:
        with server.asking("/v1/apply", apply_body(ENDLESS)):
            server.until_begun()
            assert server.readiness().status_code == 200
            with server.asking("/v1/apply", apply_body(UPDATE)):
                until(lambda: server.readiness().status_code == 503)
                assert server.readiness().json()["code"] == "text-work-stuck"
        until(lambda: server.readiness().status_code == 200)
