from __future__ import annotations

import pytest
from canned_server import PROBLEM, canned_server

from apply_service.cli.demo.edit_client import (
    EditFailedError,
    describe_problem,
    post_edit,
    post_streamed_edit,
    read_events,
)


def test_the_result_of_an_edit_is_returned() -> None:
    with canned_server({"merged": "é\n"}) as canned:
        assert post_edit("127.0.0.1", canned.port, body={"update": "ü"}) == {"merged": "é\n"}
    assert canned.bodies == [{"update": "ü"}]


def test_a_problem_is_raised_with_its_findings() -> None:
    with canned_server({}) as canned:
        canned.problem = PROBLEM
        with pytest.raises(EditFailedError, match="marker_left in line 3: a marker is left"):
            post_edit("127.0.0.1", canned.port, body={})


def test_a_stream_gives_the_pieces_and_then_the_result() -> None:
    with canned_server({"status": "applied"}) as canned:
        items = list(post_streamed_edit("127.0.0.1", canned.port, body={"update": "x"}))
    assert items == ["import", " time\n", {"status": "applied"}]
    assert canned.bodies == [{"update": "x", "stream": True}]


def test_an_error_in_the_stream_is_raised_after_the_pieces() -> None:
    with canned_server({}) as canned:
        canned.problem, canned.stream_ends_with = PROBLEM, "error"
        stream = post_streamed_edit("127.0.0.1", canned.port, body={})
        assert [next(stream), next(stream)] == ["import", " time\n"]
        with pytest.raises(EditFailedError, match="failed its checks"):
            next(stream)


def test_a_stream_may_be_left_early() -> None:
    with canned_server({}) as canned:
        stream = post_streamed_edit("127.0.0.1", canned.port, body={})
        assert next(stream) == "import"
        stream.close()


def test_events_are_read_whatever_their_line_ends_and_comments() -> None:
    lines = [b": ping\n", b"\n", b"event: token\r\n", b'data: {"text":\r\n', b'data: "a: b"}\r\n']
    assert list(read_events(iter([*lines, b"\r\n"]))) == [("token", {"text": "a: b"})]


def test_a_problem_without_findings_is_one_line() -> None:
    assert describe_problem({"title": "The queue is full", "detail": "8 wait"}) == (
        "The queue is full: 8 wait"
    )
