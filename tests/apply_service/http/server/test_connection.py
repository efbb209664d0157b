"""Clients that send or read too slowly, and too many of them, on raw sockets."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from guarded_server import guarded, serving_app
from litestar.types import Receive, Scope, Send
from oracle_service import OracleService

from apply_service.http.server.connection import ConnectionLimits
from batching.stats import EngineStats

SOON_S = 10.0
SHORT = ConnectionLimits(max_connections=100, receive_timeout_s=0.2, send_timeout_s=0.2)
HEAD = b"POST /v1/apply HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"


@contextmanager
def connect(url: str, *, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    address = urlsplit(url)
    with socket.socket() as connection:
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(SOON_S)
        connection.connect((address.hostname, address.port))
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection, in whatever way."""
    content = b""
    try:
        while piece := connection.recv(1 << 16):
            content += piece
    except ConnectionResetError:
        pass
    return content


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir, max_position=65_536, num_blocks=4096)


@pytest.mark.parametrize("start", [b"", b"POST /v1/apply HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-"])
def test_a_head_that_never_ends_is_cut(oracle: OracleService, tmp_path: Path, start: bytes) -> None:
    with (
        guarded(oracle.service, tmp_path, connections=SHORT) as server,
        connect(server.url) as connection,
    ):
        connection.sendall(start)
        assert read_all(connection) == b""


def test_a_head_in_drops_is_cut(oracle: OracleService, tmp_path: Path) -> None:
    with (
        guarded(oracle.service, tmp_path, connections=SHORT) as server,
        connect(server.url) as connection,
    ):
        sent = threading.Thread(target=_drip, args=(connection, b"GET / HTTP/1.1\r\nX-A: " * 100))
        sent.start()
        assert read_all(connection) == b""
        sent.join()


def _drip(connection: socket.socket, content: bytes) -> None:
    for position in range(len(content)):
        try:
            connection.sendall(content[position : position + 1])
        except OSError:
            return
        time.sleep(0.02)


def test_a_second_request_has_its_own_time(oracle: OracleService, tmp_path: Path) -> None:
    request = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with (
        guarded(oracle.service, tmp_path, connections=SHORT) as server,
        connect(server.url) as connection,
    ):
        for _ in range(5):
            connection.sendall(request)
            answer = b""
            while b'"live"' not in answer:
                answer += connection.recv(1 << 16)
            time.sleep(0.1)
        connection.sendall(request[:10])
        assert read_all(connection) == b""


@pytest.mark.parametrize("drips", [False, True])
def test_a_body_that_does_not_come_is_a_408(
    oracle: OracleService, tmp_path: Path, drips: bool
) -> None:
    with (
        guarded(oracle.service, tmp_path, connections=SHORT, receive_timeout_s=0.3) as server,
        connect(server.url) as connection,
    ):
        connection.sendall(HEAD + b'{"original": "')
        sender = threading.Thread(target=_drip, args=(connection, b"x" * (200 if drips else 0)))
        sender.start()
        answer = read_all(connection)
        sender.join()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["code"] == "body-too-slow"


def test_a_batch_may_pause_but_not_for_ever(oracle: OracleService, tmp_path: Path) -> None:
    edit = {"id": "1", "original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n"}
    line = json.dumps({**edit, "use_model": "never"}).encode() + b"\n"
    head = (
        b"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Type: application/x-ndjson\r\n\r\n"
    )
    with (
        guarded(oracle.service, tmp_path, receive_timeout_s=0.05) as server,
        connect(server.url) as connection,
    ):
        connection.sendall(head)
        for _ in range(2):
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            answer = b""
            while b'"result"' not in answer:
                answer += connection.recv(1 << 16)
            time.sleep(0.2)
        rest = read_all(connection)
    assert not rest.endswith(b"0\r\n\r\n"), "a batch that was cut looks like a whole one"


def test_too_many_connections_are_refused(oracle: OracleService, tmp_path: Path) -> None:
    few = ConnectionLimits(max_connections=3, receive_timeout_s=20, send_timeout_s=20)
    with guarded(oracle.service, tmp_path, connections=few) as server:
        with connect(server.url), connect(server.url), connect(server.url):
            deadline = time.monotonic() + SOON_S
            while (response := httpx.get(f"{server.url}/v1/models")).status_code != 503:
                assert time.monotonic() < deadline
            assert response.json()["code"] == "too-many-connections"
            assert response.headers["retry-after"] == "1"
        deadline = time.monotonic() + SOON_S
        while httpx.get(f"{server.url}/v1/models").status_code != 200:
            assert time.monotonic() < deadline


class EndlessAnswer:
    """An app that writes until its client is gone."""

    def __init__(self) -> None:
        self.num_sent = 0
        self.is_disconnected = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # type: ignore[comparison-overlap]
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        before = -1
        while self.num_sent - before:
            before = self.num_sent
            await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
            self.num_sent += 1 << 16
            if self.num_sent > 64 << 20:
                break
        assert (await receive())["type"] == "http.disconnect"
        self.is_disconnected.set()


def test_an_answer_that_nobody_reads_is_cut() -> None:
    app = EndlessAnswer()
    with serving_app(app, SHORT) as url, connect(url, receive_buffer=4096) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert app.is_disconnected.wait(SOON_S)


def test_a_reader_that_goes_on_is_not_cut() -> None:
    app = EndlessAnswer()
    with serving_app(app, SHORT) as url, connect(url) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        num_read = 0
        while num_read < 48 << 20:
            num_read += len(connection.recv(1 << 20))
        assert not app.is_disconnected.is_set()


def test_a_stalled_reader_of_a_stream_has_its_request_cancelled(
    oracle: OracleService, tmp_path: Path
) -> None:
    lines = [f"line_{number} = {number}" for number in range(1_000)]
    oracle.will_answer(lines)
    body = json.dumps(
        {"original": "\n".join(lines), "update": "# ...\nx = 1\n", "stream": True, "scope": "file"}
        | {"constraint": "none", "speculation": "off"}
    ).encode()
    with (
        guarded(oracle.service, tmp_path, connections=SHORT) as server,
        connect(server.url, receive_buffer=2048) as connection,
    ):
        connection.sendall(HEAD.replace(b"1000", b"%d" % len(body)) + body)
        wait_for(lambda: stats_of(oracle).cancelled == 1)
        assert stats_of(oracle).finished == stats_of(oracle).num_running == 0


def stats_of(oracle: OracleService) -> EngineStats:
    return oracle.service.served.engine.stats()


def wait_for(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_clients_that_leave_under_load_leave_nothing_behind(
    oracle: OracleService, tmp_path: Path
) -> None:
    oracle.will_answer(["def name(path):", "    return path.lower()"])
    work: dict[str, Any] = {
        "original": "def name(path):\n    return path\n",
        "update": "# ...\n    return path.lower()\n",
        "constraint": "none",
    }
    with guarded(oracle.service, tmp_path) as server:
        oracle.runner.gate.clear()
        for stream in (False, True, False, True):
            body = json.dumps({**work, "stream": stream}).encode()
            with connect(server.url) as connection:
                connection.sendall(HEAD.replace(b"1000", b"%d" % len(body)) + body)
                if not stream:
                    time.sleep(0.05)
                else:
                    connection.recv(1)
        oracle.runner.gate.set()
        wait_for(lambda: num_held(oracle) == 0)
        with server.client() as client:
            assert client.post("/v1/apply", json=work).status_code == 200
        assert stats_of(oracle).num_free_blocks == stats_of(oracle).num_blocks


@pytest.mark.parametrize(
    "path", ["/v1/apply", "/v1/chat/completions", "/v1/code/apply", "/v1/batches"]
)
def test_a_client_that_leaves_in_its_body_is_no_failure_of_the_server(
    oracle: OracleService, tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with guarded(oracle.service, tmp_path) as server:
        with connect(server.url) as connection:
            connection.sendall(HEAD.replace(b"/v1/apply", path.encode()) + b'{"original": "')
            wait_for(lambda: not server.drain.is_idle)
        wait_for(lambda: server.drain.is_idle)
        with server.client() as client:
            figures = client.get("/metrics").text
    named = [line for line in figures.splitlines() if f'route="{path}"' in line]
    counted = [line for line in named if line.startswith("apply_http_requests_total")]
    status = "200" if path == "/v1/batches" else "none"  # of a batch the answer had begun
    assert [f'status="{status}"' in line for line in counted] == [True]
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def num_held(oracle: OracleService) -> int:
    stats = stats_of(oracle)
    return stats.num_running + stats.num_waiting


def close_after(size: int) -> bytes:
    """The head of a request with a body of `size` bytes, whose connection ends with its answer."""
    length = f"Connection: close\r\nContent-Length: {size}".encode()
    return HEAD.replace(b"Content-Length: 1000", length)


def test_a_client_that_sends_more_than_is_read_sees_its_answer(
    oracle: OracleService, tmp_path: Path
) -> None:
    num_pieces = 32
    with guarded(oracle.service, tmp_path) as server, connect(server.url) as connection:
        connection.sendall(close_after(num_pieces << 20))
        for _ in range(num_pieces):
            connection.sendall(b" " * (1 << 20))
        content = b""
        while piece := connection.recv(1 << 16):
            content += piece
    assert content.startswith(b"HTTP/1.1 4")


def test_a_client_that_never_stops_sending_is_cut(oracle: OracleService, tmp_path: Path) -> None:
    with guarded(oracle.service, tmp_path) as server, connect(server.url) as connection:
        connection.sendall(close_after(10**12))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            _send_for_ever(connection)


def _send_for_ever(connection: socket.socket) -> None:
    while True:
        connection.sendall(b" " * (1 << 20))
