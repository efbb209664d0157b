"""How a server process ends: under load, in time, and at once when it is told twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve_process import ROOT, ServeProcess, serve_process

WORK: dict[str, Any] = {
    "original": "one = 1\ntwo = 2\n",
    "update": "# ... existing code ...\ntwo = 3\n",
    "checks": "off",
    "use_model": "always",
    "speculation": "off",
    "constraint": "none",
    "scope": "file",
}
NUM_CLIENTS = 6
ENDED = {"finished", "shutting_down"}


@pytest.fixture
def flags(tiny_model_dir: Path) -> list[str]:
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]
    # One process starts sooner; the first test has two.
    return [*flags, "--log-format", "json", "--in-process", "true"]


def body(num_tokens: int, *, stream: bool = False) -> dict[str, Any]:
    return {**WORK, "stream": stream, "sampling": {"max_tokens": num_tokens}, "deadline_s": 100}


def outcome_of(response: httpx.Response) -> str:
    """How a request ended; a stream that broke off has no end."""
    if response.headers["content-type"].startswith("text/event-stream"):
        blocks = response.text.strip().split("\n\n")
        name, _, data = blocks[-1].partition("\n")
        if name == "event: result":
            return "finished"
        return str(json.loads(data.removeprefix("data: "))["code"])
    return "finished" if response.status_code == 200 else str(response.json()["code"])


class Load:
    """Clients that send one request after the other, each on a connection of its own."""

    def __init__(self, url: str, *, num_tokens: int) -> None:
        self._url = url
        self._num_tokens = num_tokens
        self.outcomes: Counter[str] = Counter()
        self.num_broken = 0
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(bool(number % 2),))
            for number in range(NUM_CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, stream: bool) -> None:
        while True:
            try:
                response = httpx.post(
                    f"{self._url}/v1/apply",
                    json=body(self._num_tokens, stream=stream),
                    timeout=60,
                )
            except httpx.ConnectError:
                return
            except (httpx.ReadError, httpx.RemoteProtocolError):
                with self._lock:
                    self.num_broken += 1
                return
            with self._lock:
                self.outcomes[outcome_of(response)] += 1
            time.sleep(0.01)

    def join(self) -> None:
        """Wait until no client can connect any more."""
        for thread in self._threads:
            thread.join(timeout=120)
            assert not thread.is_alive()


def num_served(server: ServeProcess) -> int:
    """Edits that the server has taken, or refused by itself, by its log."""
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    return sum(line["event"] == "request" and line["method"] == "POST" for line in lines)


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait for an event, however slow the machine; a test that never sees it fails."""
    deadline = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def test_every_request_that_was_taken_ends(flags: list[str]) -> None:
    with serve_process(*flags, "--in-process", "false", "--drain-s", "20") as (server, url):
        server.wait_for("ready: model")
        load = Load(url, num_tokens=10)
        wait_until(lambda: load.outcomes.total() >= 2 * NUM_CLIENTS)
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        load.join()
    assert set(load.outcomes) <= ENDED, load.outcomes
    assert load.outcomes["finished"] >= 2 * NUM_CLIENTS
    # Whoever got no answer had connected, and was not taken.
    assert num_served(server) == load.outcomes.total()
    log = "".join(server.log)
    assert "Traceback" not in log
    assert '"level": "error"' not in log


def test_what_does_not_end_in_time_is_told_so(flags: list[str]) -> None:
    with serve_process(*flags, "--drain-s", "1") as (server, url):
        server.wait_for("ready: model")
        load = Load(url, num_tokens=3000)
        wait_until(lambda: num_running(url) == NUM_CLIENTS)
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        load.join()
    assert set(load.outcomes) == {"shutting_down"}
    assert load.outcomes["shutting_down"] >= NUM_CLIENTS
    assert num_served(server) == load.outcomes.total()
    assert "did not end in time" not in "".join(server.log)


def num_running(url: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if "num_requests_running" in line and not line.startswith("#")
    )


@pytest.mark.parametrize(
    "sig", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_second_signal_ends_at_once(flags: list[str], sig: signal.Signals) -> None:
    with serve_process(*flags, "--drain-s", "300") as (server, url):
        server.wait_for("ready: model")
        load = Load(url, num_tokens=3000)
        wait_until(lambda: num_running(url) > 0)
        server.process.send_signal(sig)
        server.wait_for("running requests get")
        ready = httpx.get(f"{url}/health/ready")
        assert (ready.status_code, ready.json()["code"]) == (503, "shutting_down")
        server.process.send_signal(sig)
        assert server.end() == 128 + sig
        load.join()


STUCK = """
import sys, threading
from pathlib import Path
from guarded_server import PRIVATE, NO_LIMITS, protection_of
from oracle_service import OracleService
import uvicorn
from apply_service.http.app import create_app
from apply_service.http.server.graceful_server import GracefulServer
from apply_service.http.server.listener import listen, url_of

oracle = OracleService(Path(sys.argv[1]))
oracle.runner.gate.clear()
protection = protection_of(Path(sys.argv[2]))
app = create_app(oracle.service, max_body_bytes=100_000, protection=protection)
config = uvicorn.Config(app, log_config=None)
listener = listen("127.0.0.1", 0)
print(url_of(listener), flush=True)
GracefulServer(config, service=oracle.service, drain=protection.drain, drain_s=0.5).run([listener])
"""


@pytest.mark.slow
def test_a_stuck_engine_does_not_keep_the_process(tiny_model_dir: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(tiny_model_dir), str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        ready_url = f"{url}/health/ready?model=ready"
        wait_until(lambda: httpx.get(ready_url, timeout=60).status_code == 200)
        broken: list[str] = []
        thread = threading.Thread(target=_expect_no_answer, args=(url, broken))
        thread.start()
        wait_until(lambda: num_running(url) > 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
        thread.join()
    assert broken == ["broken"]


def _expect_no_answer(url: str, broken: list[str]) -> None:
    try:
        httpx.post(f"{url}/v1/apply", json=body(10), timeout=60)
    except httpx.TransportError:
        broken.append("broken")
