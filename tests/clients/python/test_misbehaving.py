"""Both clients against a server that misbehaves: what is tried again, and what is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from apply_client import (
    APIConnectionError,
    APITimeoutError,
    ApplyClientError,
    AuthenticationError,
    BadRequestError,
    Edit,
    EditRejectedError,
    InvalidResponseError,
    RateLimitError,
    RetryPolicy,
    ServerError,
    Token,
)
from client_callers import CALLERS, Caller
from misbehaving_server import MisbehavingServer, Reply, misbehaving_server, reply, stream_reply

EDIT = Edit("a = 1\n", "a = 2\n")
RESULT = json.dumps(
    {
        "id": "apply-1",
        "status": "applied",
        "confidence": None,
        "merged": "a = 2\n",
        "diff": "",
        "findings": [],
        "removed_lines": [],
        "source": "merge",
        "scope": "file",
        "regions": [],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        "speculation": {
            "drafted": 0,
            "accepted": 0,
            "target_passes": 0,
            "decode_passes": 0,
            "mean_accepted_length": 0.0,
            "tokens_per_target_pass": 0.0,
        },
        "timing": {"queue": 0.0, "prefill": 0.0, "decode": 0.0, "total": 0.0},
        "model": "canned",
        "a_member_of_tomorrow": [1, 2, 3],
    }
).encode()
RESULT_EVENT = b"event: result\ndata: %s\n\n" % RESULT
TOKEN_EVENT = b'event: token\ndata: {"region": 0, "text": "a"}\n\n'


def problem(status: int, code: str, **members: Any) -> bytes:
    return json.dumps(
        {"status": status, "code": code, "detail": f"it is {code}", **members}
    ).encode()


BUSY = reply(429, problem(429, "queue-full"), headers={"Retry-After": "0"})
STARTING = reply(503, problem(503, "not-ready"))
GOOD = reply(200, RESULT)
RESET = Reply(is_reset=True)


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as one:
        yield one


@pytest.fixture(params=sorted(CALLERS))
def make_caller(request: pytest.FixtureRequest, server: MisbehavingServer) -> Callable[..., Caller]:
    return lambda **options: CALLERS[request.param](server.url, **options)


@pytest.fixture
def caller(make_caller: Callable[..., Caller]) -> Caller:
    return make_caller()


@pytest.mark.parametrize(
    "replies",
    [
        [BUSY, GOOD],
        [BUSY, STARTING, RESET, GOOD],
        [Reply(), GOOD],
        [reply(200, RESULT, is_reset=True), GOOD],
        [Reply(b"HTTP/1.1 200 OK\r\nContent-Le"), GOOD],
        [Reply(b"this is no HTTP\r\n\r\n"), GOOD],
    ],
    ids=["429", "429 503 reset", "closed", "reset in the body", "cut head", "no HTTP"],
)
def test_what_may_pass_is_tried_again(
    replies: list[Reply], caller: Caller, server: MisbehavingServer
) -> None:
    server.will(*replies)
    assert caller.apply(EDIT).merged == "a = 2\n"
    assert len(server.requests) == len(replies)
    assert len({request.partition(b"\r\n\r\n")[2] for request in server.requests}) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(400, problem(400, "bad")), BadRequestError),
        (reply(401, problem(401, "no-key")), AuthenticationError),
        (reply(422, problem(422, "rejected", findings=[])), EditRejectedError),
        (reply(500, problem(500, "internal")), ServerError),
        (reply(504, problem(504, "deadline-exceeded")), ServerError),
        (reply(502, b"<html>Bad gateway</html>"), ServerError),
        (reply(302, b"", headers={"Location": "http://127.0.0.1:9/"}), BadRequestError),
        (reply(200, b"<html>Welcome</html>"), InvalidResponseError),
        (reply(200, RESULT.replace(b'"a = 2\\n"', b'{"base64": "YQ=="}')), InvalidResponseError),
        (reply(200, b'{"id": "\xff"}'), InvalidResponseError),
    ],
)
def test_all_else_is_an_error_at_once(
    answer: Reply, kind: type[ApplyClientError], caller: Caller, server: MisbehavingServer
) -> None:
    for call in (caller.apply, caller.stream):
        server.will(answer)
        if call == caller.stream and kind is InvalidResponseError:
            continue  # a stream is read as events, whatever it is
        with pytest.raises(kind) as caught:
            call(EDIT)
        assert len(server.requests) == 1
        assert str(caught.value)


def test_giving_up_tells_the_last_reason(caller: Caller, server: MisbehavingServer) -> None:
    for call in (caller.apply, caller.stream):
        server.will(reply(429, problem(429, "queue-full"), headers={"X-Request-Id": "req-7"}))
        with pytest.raises(RateLimitError, match="it is queue-full") as caught:
            call(EDIT)
        assert caught.value.request_id == "req-7"
        assert len(server.requests) == 4, "three retries"
        server.will(RESET)
        with pytest.raises(APIConnectionError, match=r"4 tries, at most 4 within 30 s"):
            call(EDIT)
        assert len(server.requests) == 4


def test_a_wait_beyond_the_time_that_is_left_is_not_begun(
    caller: Caller, server: MisbehavingServer
) -> None:
    server.will(reply(503, problem(503, "not-ready"), headers={"Retry-After": "31"}), GOOD)
    with pytest.raises(ServerError, match="it is not-ready"):
        caller.apply(EDIT)
    assert len(server.requests) == 1


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n{"], ids=["nothing", "no end"])
def test_silence_ends_with_the_time(
    head: bytes, make_caller: Callable[..., Caller], server: MisbehavingServer
) -> None:
    caller = make_caller(retry=RetryPolicy(timeout_s=0.2))
    for call in (caller.apply, caller.stream):
        server.will(Reply(head, is_silent=True))
        with pytest.raises(APITimeoutError):
            call(EDIT)
        assert len(server.requests) == 1, "no time is left for another try"


def test_a_stream_is_not_begun_again(caller: Caller, server: MisbehavingServer) -> None:
    server.will(BUSY, stream_reply(TOKEN_EVENT, is_reset=True), stream_reply(RESULT_EVENT))
    with pytest.raises(APIConnectionError):
        caller.stream(EDIT)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body",
    [b"", TOKEN_EVENT, RESULT_EVENT[:-1], b"event: result\ndata: {}", b"\0\xff\n\n", b"data\n\n"],
)
def test_a_stream_that_ends_early_is_no_result(
    body: bytes, caller: Caller, server: MisbehavingServer
) -> None:
    server.will(stream_reply(body))
    with pytest.raises(APIConnectionError, match="the stream ended before its result"):
        caller.stream(EDIT)


@pytest.mark.parametrize("name", [b"result", b"error", b"token", b"region"])
@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"\xff", b'{"region": "x"}'])
def test_garbage_in_an_event_is_said(
    name: bytes, garbage: bytes, caller: Caller, server: MisbehavingServer
) -> None:
    server.will(stream_reply(b"event: %s\ndata: %s\n\n" % (name, garbage)))
    with pytest.raises(InvalidResponseError, match="none of this API"):
        caller.stream(EDIT)


def test_what_is_not_known_is_skipped(caller: Caller, server: MisbehavingServer) -> None:
    server.will(
        stream_reply(
            b": keep-alive\n\nretry: 5\nid: 1\n\nevent: of_tomorrow\ndata: ?\n\n"
            + TOKEN_EVENT
            + b"nonsense\n\n"
            + RESULT_EVENT
            + b"event: token\ndata: behind the end\n\n"
        )
    )
    token, result = caller.stream(EDIT)
    assert token == Token(region=0, text="a")
    assert result.merged == "a = 2\n"


def test_an_error_event_is_raised(caller: Caller, server: MisbehavingServer) -> None:
    finding = {"code": "x", "severity": "error", "message": "m", "hint": "h"}
    event = problem(422, "rejected", findings=[finding], id="apply-9")
    server.will(stream_reply(TOKEN_EVENT + b"event: error\ndata: %s\n\n" % event))
    with pytest.raises(EditRejectedError) as caught:
        caller.stream(EDIT)
    assert [one.hint for one in caught.value.findings] == ["h"]
    assert caught.value.request_id == "apply-9"


def test_the_key_goes_with_every_request(
    make_caller: Callable[..., Caller],
    server: MisbehavingServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APPLY_API_KEY", "from the environment")
    server.will(GOOD)
    make_caller().apply(EDIT)
    make_caller(api_key="of the call").apply(EDIT)
    keys = [
        line
        for request in server.requests
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"authorization:")
    ]
    assert keys == [
        b"Authorization: Bearer from the environment",
        b"Authorization: Bearer of the call",
    ]
    with pytest.raises(ApplyClientError, match="a character that no header can carry"):
        make_caller(api_key="a\nb").apply(EDIT)
