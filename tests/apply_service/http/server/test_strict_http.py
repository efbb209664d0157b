"""Requests that a proxy in front could read in another way: refused on the wire, with the end."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from guarded_server import GuardedServer, guarded
from oracle_service import OracleService

SOON_S = 10.0
HEAD = b"POST /v1/apply HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
# What an attacker would have the server read behind the first request.
HIDDEN = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
EDIT = b'{"original": "a = 1\\nb = 2\\n", "update": "a = 1\\nb = 3\\n", "use_model": "never"}'


@pytest.fixture(scope="module")
def server(
    tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedServer]:
    oracle = OracleService(tiny_model_dir)
    with guarded(oracle.service, tmp_path_factory.mktemp("keys")) as server:
        yield server


def answer_to(server: GuardedServer, *pieces: bytes) -> bytes:
    """All that comes until the server ends the connection."""
    address = urlsplit(server.url)
    content = b""
    with socket.create_connection((address.hostname, address.port), timeout=SOON_S) as connection:
        for piece in pieces:
            connection.sendall(piece)
        while received := connection.recv(1 << 16):
            content += received
    return content


REFUSED = {
    "both lengths": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths, the other way": HEAD
    + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    "chunks before HTTP/1.1": CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n",
    "another coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a hidden coding": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "a list of lengths": HEAD + b"Content-Length: 0, 5\r\n\r\n",
    "a signed length": HEAD + b"Content-Length: +0\r\n\r\n",
    "a space in a name": HEAD + b"Content-Length : 0\r\n\r\n",
    "bare LF everywhere": HIDDEN.replace(b"\r\n", b"\n"),
    "bare LF in one line": HEAD + b"X-A: b\nContent-Length: 0\r\n\r\n",
    "bare LF at the end": HEAD + b"Content-Length: 0\r\n\n",
    "bare CR in a value": HEAD + b"X-A: b\rContent-Length: 5\r\n\r\n",
    "a folded header": HEAD + b"X-A: b\r\n Content-Length: 5\r\n\r\n",
    "a folded header by tab": HEAD + b"X-A: b\r\n\tc\r\n\r\n",
    "no host": HEAD.replace(b"Host: localhost\r\n", b"") + b"\r\n",
    "two hosts": HEAD + b"Host: evil.example.com\r\n\r\n",
    "bare LF behind the last chunk": CHUNKED + b"0\r\n\n",
    "bare LF in a trailer": CHUNKED + b"0\r\nX-A: b\n\r\n",
    "no end of a chunk": CHUNKED + b"3\r\nabcXX0\r\n\r\n",
    "a chunk without a limit": CHUNKED + b"f" * 40 + b"\r\n",
    "a body in crumbs": CHUNKED + b"1\r\n \r\n" * 12_000 + b"0\r\n\r\n",
    "a very long head": HEAD + b"X-A: b\r\n" * 20_000 + b"\r\n",
    "a very long line": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "in halves"])
def test_what_could_be_read_in_two_ways_is_a_400(
    server: GuardedServer, request_bytes: bytes, is_whole: bool
) -> None:
    sent = request_bytes + HIDDEN
    if len(sent) > 50_000:
        sent = request_bytes  # closed while more is under way, a connection is reset
    cut = 0 if is_whole else len(request_bytes) // 2
    try:
        answer = answer_to(server, sent[:cut], sent[cut:])
    except ConnectionError:
        assert len(sent) > 50_000
        return
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nConnection: close" in head
    assert answer.count(b"HTTP/1.1 ") == 1, "what stands behind is not read as a request"
    problem = json.loads(body)
    assert (problem["code"], problem["status"]) == ("bad-request", 400)
    assert problem["detail"]


def test_a_body_that_goes_wrong_behind_a_begun_answer_ends_it(server: GuardedServer) -> None:
    """Without its last chunk the answer cannot be taken for a whole one."""
    address = urlsplit(server.url)
    line = b'{"id": "a", ' + EDIT[1:] + b"\n"
    start = CHUNKED.replace(b"/v1/apply", b"/v1/batches") + b"%x\r\n%s\r\n" % (len(line), line)
    with socket.create_connection((address.hostname, address.port), timeout=SOON_S) as connection:
        connection.sendall(start)
        content = b""
        while b'"result"' not in content:
            content += connection.recv(1 << 16)
        connection.sendall(b"this is no chunk\r\n")
        try:
            while received := connection.recv(1 << 16):
                content += received
        except ConnectionResetError:
            pass
    assert content.count(b"HTTP/1.1 ") == 1
    assert not content.endswith(b"0\r\n\r\n")


def test_what_is_right_is_served(server: GuardedServer) -> None:
    """Equal lengths, chunks with trailers, and one request behind the other."""
    close = HIDDEN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    length = b"Content-Length: %d\r\n" % len(EDIT)
    answer = answer_to(
        server,
        HEAD + length + length + b"\r\n" + EDIT,
        CHUNKED + b"%x\r\n%s\r\n0\r\nX-A: b\r\n\r\n" % (len(EDIT), EDIT),
        close,
    )
    assert answer.count(b"HTTP/1.1 200 ") == 3
