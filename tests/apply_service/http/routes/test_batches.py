"""`POST /v1/batches`: an answer for every line, bounded, in its turn, given up in time."""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from batch_connection import BatchConnection
from hypothesis import given
from hypothesis import strategies as st
from oracle_service import OracleService
from server_thread import serving

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import BusyError
from apply_service.apply.events import EventSink, RegionStarted
from apply_service.apply.outcome import Outcome
from apply_service.http.batch_lines import LineSplitter
from apply_service.service import BatchLimits
from batching.stats import EngineStats

MAX_IN_FLIGHT = 4
WAIT_S = 10.0
LINES = ["def one():", "    return 1", "", "", "def two():", "    return 2"]
MERGED_LINES = [*LINES[:-1], "    return 22"]
MERGED = "".join(f"{line}\n" for line in MERGED_LINES)


def edit(name: str, **changes: Any) -> dict[str, Any]:
    """An edit that the oracle is asked about."""
    return {
        "id": name,
        "original": "".join(f"{line}\n" for line in LINES),
        "update": "# ... existing code ...\ndef two():\n    return 22\n",
        "path": "numbers.py",
        "scope": "file",
        "constraint": "none",
        "use_model": "always",
        **changes,
    }


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    """Few places in the queue, of which batches may take two."""
    oracle = OracleService(tiny_model_dir, max_waiting=2, max_running=2)
    oracle.service.batch_limits = BatchLimits(max_in_flight=MAX_IN_FLIGHT)
    oracle.will_answer(MERGED_LINES)
    return oracle


@pytest.fixture
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as address:
        yield address
        oracle.runner.gate.set()


def stats_when(oracle: OracleService, *, is_busy: bool) -> EngineStats:
    """The engine's figures once it computes something, or nothing."""
    deadline = time.monotonic() + WAIT_S
    while bool((stats := oracle.service.served.engine.stats()).num_running) is not is_busy:
        assert time.monotonic() < deadline, stats
        time.sleep(0.005)
    return stats


def test_one_answer_for_every_line_whatever_is_in_it(url: str) -> None:
    bad_lines = {
        2: (b'{"id": "x", broken', None, 400, "invalid-json"),
        3: (b'{"id": "y", "original": 1, "update": "z"}', "y", 400, "invalid-field"),
        4: (b'{"original": "a", "update": "b"}', None, 400, "invalid-field"),
        5: (b"[]", None, 400, "invalid-field"),
        6: (b"\xff\xfe", None, 400, "invalid-json"),
        8: (b'{"id": "large", "original": "%s"}' % (b"x" * 200_000), None, 413, "body-too-large"),
        9: (json.dumps(edit("urgent", priority="interactive")).encode(), "urgent", 400, None),
        10: (json.dumps(edit("empty", update="")).encode(), "empty", 400, "empty-update"),
        11: (json.dumps(edit("model", model="none")).encode(), "model", 404, "unknown-model"),
        12: (json.dumps(edit("streamed", stream=True)).encode(), "streamed", 400, None),
    }
    lines = [b""] * 14
    for number, (content, *_) in bad_lines.items():
        lines[number - 1] = content
    lines[0] = json.dumps(edit("first")).encode()
    lines[12] = b"  \r"
    lines[13] = json.dumps(edit("last", response="file")).encode()  # without a newline behind it
    response = httpx.post(f"{url}/v1/batches", content=b"\n".join(lines), timeout=30)
    assert response.headers["content-type"] == "application/x-ndjson"
    answers = {answer["line"]: answer for answer in map(json.loads, response.text.splitlines())}
    assert sorted(answers) == [1, *bad_lines, 14], "blank lines are counted and not answered"
    for number, (_, name, status, code) in bad_lines.items():
        problem = answers[number]["problem"]
        assert (answers[number]["id"], problem["status"]) == (name, status)
        assert code in (None, problem["code"])
        assert "result" not in answers[number]
    for number, name in ((1, "first"), (14, "last")):
        assert answers[number]["id"] == name
        assert answers[number]["result"]["merged"] == MERGED


def test_lines_that_are_nested_too_deeply_are_answered_like_others(url: str) -> None:
    """More of them than are under way at once: none keeps its place."""
    deep = b'{"id": "deep", "x": %s}' % (b"[" * 20_000 + b"]" * 20_000)
    good = json.dumps(edit("good")).encode()
    content = b"\n".join([deep, good, *[deep] * (2 * MAX_IN_FLIGHT), good])
    response = httpx.post(f"{url}/v1/batches", content=content, timeout=30)
    answers = [json.loads(line) for line in response.text.splitlines()]
    assert sorted(answer["line"] for answer in answers) == list(range(1, 2 * MAX_IN_FLIGHT + 4))
    assert sum("result" in answer for answer in answers) == 2
    problems = [answer["problem"] for answer in answers if "problem" in answer]
    assert {(one["status"], one["code"]) for one in problems} == {(400, "too-deeply-nested")}


def test_an_empty_body_has_no_answers(url: str) -> None:
    response = httpx.post(f"{url}/v1/batches", content=b"\n \n")
    assert (response.status_code, response.content) == (200, b"")


def test_a_service_that_ends_refuses_before_it_reads(oracle: OracleService, url: str) -> None:
    oracle.service.begin_drain()
    response = httpx.post(f"{url}/v1/batches", content=json.dumps(edit("a")))
    assert (response.status_code, response.json()["code"]) == (503, "shutting_down")


def test_answers_come_while_lines_are_sent(url: str) -> None:
    with BatchConnection(url) as batch:
        for number in range(3):
            batch.send(edit(f"edit {number}"))
            answer = next(batch.answers())
            assert answer["id"] == f"edit {number}"
            assert answer["result"]["status"] == "applied"
        batch.send(json.dumps(edit("in pieces")).encode()[:20])
        batch.send(json.dumps(edit("in pieces")).encode()[20:] + b"\n")
        batch.end()
        assert [answer["id"] for answer in batch.answers()] == ["in pieces"]


def test_a_full_queue_makes_lines_wait(oracle: OracleService, url: str) -> None:
    oracle.runner.gate.clear()
    names = [f"edit {number}" for number in range(3 * MAX_IN_FLIGHT)]
    with BatchConnection(url) as batch:
        batch.send_all(edit(name) for name in names)
        batch.end()
        stats_when(oracle, is_busy=True)
        time.sleep(0.2)  # two lines are with the engine, two try again and again
        oracle.runner.gate.set()
        answers = list(batch.answers())
    assert sorted(answer["id"] for answer in answers) == sorted(names)
    assert all(answer["result"]["merged"] == MERGED for answer in answers)


@pytest.mark.parametrize(("has_begun", "num_runs"), [(False, 2), (True, 1)])
def test_a_line_is_run_again_only_if_it_has_not_begun(
    oracle: OracleService,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_begun: bool,
    num_runs: int,
) -> None:
    apply = oracle.service.apply
    runs: list[EditRequest] = []

    async def find_no_room_once(edit: EditRequest, events: EventSink) -> Outcome:
        runs.append(edit)
        if len(runs) > 1:
            return await apply(edit, events)
        if has_begun:
            events.put(RegionStarted(0, 0, 1))
        raise BusyError("others need the room", retry_after_s=1.0)

    monkeypatch.setattr(oracle.service, "apply", find_no_room_once)
    response = httpx.post(f"{url}/v1/batches", content=json.dumps(edit("a")), timeout=30)
    (answer,) = [json.loads(line) for line in response.text.splitlines()]
    assert len(runs) == num_runs
    if has_begun:
        assert answer["problem"]["code"] == "queue-full"
    else:
        assert answer["result"]["merged"] == MERGED


def test_answers_that_nobody_takes_stop_the_reading(oracle: OracleService, url: str) -> None:
    """Sent without reading: the server keeps a few lines, and the rest stays with the sender."""
    line = edit("wide", use_model="never", constraint=None)
    line["original"] = f"# {'x' * 18_000}\n" + line["original"]
    with BatchConnection(url, timeout_s=0.5) as batch, pytest.raises(TimeoutError):
        batch.send_all([line] * 1500)


def test_a_client_that_goes_away_takes_its_lines_along(oracle: OracleService, url: str) -> None:
    oracle.runner.gate.clear()
    with BatchConnection(url) as batch:
        batch.send_all(edit(f"edit {number}") for number in range(3 * MAX_IN_FLIGHT))
        stats_when(oracle, is_busy=True)
    time.sleep(0.2)
    oracle.runner.gate.set()
    stats = stats_when(oracle, is_busy=False)
    assert stats.num_waiting == 0
    assert 1 <= stats.finished + stats.cancelled <= 2, "the others had not begun"
    assert stats.num_free_blocks == stats.num_blocks


def test_other_edits_find_room_beside_a_batch(oracle: OracleService, url: str) -> None:
    oracle.runner.gate.clear()
    with BatchConnection(url) as batch:
        batch.send_all(edit(f"edit {number}") for number in range(2 * MAX_IN_FLIGHT))
        batch.end()
        stats_when(oracle, is_busy=True)
        oracle.runner.gate.set()
        body = {name: value for name, value in edit("urgent").items() if name != "id"}
        response = httpx.post(f"{url}/v1/apply", json=body, timeout=30)
        assert response.json()["merged"] == MERGED
        assert len(list(batch.answers())) == 2 * MAX_IN_FLIGHT


def test_a_server_that_ends_answers_what_it_does_not_begin(oracle: OracleService, url: str) -> None:
    oracle.runner.gate.clear()
    with BatchConnection(url) as batch:
        batch.send(edit("begun"))
        stats_when(oracle, is_busy=True)
        oracle.service.begin_drain()
        batch.send_all(edit(f"late {number}") for number in range(10))
        batch.end()
        answers = batch.answers()
        late = [next(answers) for _ in range(10)]
        assert {answer["problem"]["code"] for answer in late} == {"shutting_down"}
        assert sorted(answer["id"] for answer in late) == [f"late {number}" for number in range(10)]
        oracle.runner.gate.set()
        assert [answer["result"]["merged"] for answer in answers] == [MERGED]


def test_a_server_that_ends_does_not_wait_for_more_lines(
    oracle: OracleService, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that leaves its batch open, with nothing under way, would hold up the end."""
    with BatchConnection(url) as batch:
        batch.send(edit("first", use_model="never", constraint=None))
        answers = batch.answers()
        assert next(answers)["id"] == "first"
        oracle.service.begin_drain()
        (last,) = answers
    assert (last["line"], last["problem"]["code"]) == (2, "shutting_down")
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


@given(
    lines=st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), max_size=8),
    cuts=st.lists(st.integers(0, 100), max_size=10),
    has_last_newline=st.booleans(),
)
def test_lines_do_not_depend_on_how_they_are_cut(
    lines: list[bytes], cuts: list[int], has_last_newline: bool
) -> None:
    body = b"\n".join(lines) + (b"\n" if has_last_newline else b"")
    splitter = LineSplitter(max_line_bytes=8)
    borders = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    found = []
    for start, stop in itertools.pairwise(borders):
        found += splitter.feed(body[start:stop])
    found += splitter.end()
    expected = [
        (number, line if len(line) <= 8 else None, len(line))
        for number, line in enumerate(body.split(b"\n"), start=1)
        if line.strip() or len(line) > 8
    ]
    assert [(line.number, line.content, line.num_bytes) for line in found] == expected
