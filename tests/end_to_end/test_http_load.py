"""Clients that leave, queues that are full: over a real socket, with an oracle as the model."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving

WAIT_S = 10.0
LINES = [f"line_{number} = {number}" for number in range(60)]
EDIT = {
    "original": "\n".join(LINES) + "\n",
    "update": "# ... existing code ...\nline_59 = 59\nline_60 = 60\n",
}


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir, max_running=2, max_waiting=1)
    oracle.will_answer([*LINES, "line_60 = 60"])
    return oracle


@pytest.fixture
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as url:
        yield url


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_idle(oracle: OracleService) -> bool:
    stats = oracle.service.served.engine.stats()
    return stats.num_running == stats.num_waiting == 0 and stats.num_free_blocks == stats.num_blocks


def test_a_client_that_leaves_in_mid_stream_frees_every_block(
    oracle: OracleService, url: str
) -> None:
    oracle.runner.step_s = 0.02
    body = {**EDIT, "stream": True, "speculation": "off"}
    with httpx.stream("POST", f"{url}/v1/apply", json=body, timeout=WAIT_S) as response:
        for line in response.iter_lines():
            if line == "event: token":
                break
        assert not is_idle(oracle)
    wait_until(lambda: is_idle(oracle), "blocks are held by a client that has gone")
    stats = oracle.service.served.engine.stats()
    assert (stats.cancelled, stats.finished) == (1, 0)
    oracle.runner.step_s = 0.0
    assert httpx.post(f"{url}/v1/apply", json=EDIT, timeout=WAIT_S).json()["status"] == "applied"


def test_a_client_that_leaves_while_it_waits_frees_every_block(
    oracle: OracleService, url: str
) -> None:
    oracle.runner.step_s = 0.02
    address = httpx.URL(url)
    connection = HTTPConnection(address.host, address.port, timeout=WAIT_S)
    body = json.dumps({**EDIT, "speculation": "off"})
    connection.request("POST", "/v1/apply", body, {"Content-Type": "application/json"})
    engine = oracle.service.served.engine
    wait_until(lambda: engine.stats().num_running == 1, "the request never ran")
    connection.close()
    wait_until(lambda: is_idle(oracle), "blocks are held by a client that has gone")
    assert engine.stats().cancelled == 1


def test_a_full_queue_is_429_and_the_others_finish(oracle: OracleService, url: str) -> None:
    oracle.runner.gate.clear()
    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(httpx.post(f"{url}/v1/apply", json=EDIT, timeout=WAIT_S))

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    refused: list[Any] = []

    def is_refused() -> bool:
        try:
            refused.append(httpx.post(f"{url}/v1/apply", json=EDIT, timeout=0.5))
        except httpx.ReadTimeout:
            return False
        return True

    wait_until(is_refused, "the queue never filled")
    oracle.runner.gate.set()
    for thread in threads:
        thread.join(WAIT_S)
    assert refused[-1].status_code == 429
    assert int(refused[-1].headers["Retry-After"]) >= 1
    assert refused[-1].json()["code"] == "queue-full"
    assert {answer.status_code for answer in answers} <= {200, 429}
    assert 200 in {answer.status_code for answer in answers}
    wait_until(lambda: is_idle(oracle), "blocks are held after the last answer")


def test_stopping_lets_a_stream_end(tiny_model_dir: Path) -> None:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer([*LINES, "line_60 = 60"])
    oracle.runner.step_s = 0.02
    texts: list[str] = []

    def read(url: str) -> None:
        response = httpx.post(f"{url}/v1/apply", json={**EDIT, "stream": True}, timeout=WAIT_S)
        texts.append(response.text)

    with serving(oracle.service) as url:
        thread = threading.Thread(target=read, args=(url,))
        thread.start()
        wait_until(lambda: not is_idle(oracle), "the request never started")
    thread.join(WAIT_S)
    assert texts[0].count("event: result") == 1
