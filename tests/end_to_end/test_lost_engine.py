"""A server whose engine's process is killed, and an engine whose server is."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve_process import ServeProcess, serve_process
from server_holdings import Server, is_running

LIMIT_S = 60.0
WORK: dict[str, Any] = {
    "original": "one = 1\ntwo = 2\n",
    "update": "# ... existing code ...\ntwo = 3\n",
    "checks": "off",
    "use_model": "always",
    "constraint": "none",
    "scope": "file",
    "deadline_s": 50,
}
NUM_CLIENTS = 6
NUM_HANGING = 8
STALL_S = 15


@pytest.fixture(scope="module")
def started(tiny_model_dir: Path) -> Iterator[tuple[ServeProcess, str]]:
    """A server that tests share: each leaves it with an engine, but for the last one."""
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]
    with serve_process(*flags, "--stall-s", str(STALL_S)) as (server, url):
        server.wait_for("ready: model")
        yield server, url


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def readiness(url: str) -> str:
    answer = httpx.get(f"{url}/health/ready?model=ready")
    return str(answer.json().get("code", answer.json()["status"]))


async def send_edits(url: str, ends: Counter[str], is_over: asyncio.Event) -> None:
    """One edit after the other, until it is over; each has an end that is known."""
    async with httpx.AsyncClient(base_url=url, timeout=LIMIT_S) as client:
        while not is_over.is_set():
            answer = await client.post(
                "/v1/apply", json={**WORK, "sampling": {"max_tokens": 300}, "speculation": "off"}
            )
            ends[f"{answer.status_code} {answer.json().get('code', 'done')}"] += 1
            if answer.status_code == 503:
                await asyncio.sleep(0.02)


def test_a_killed_engine_costs_its_requests_a_clear_error_and_comes_back(
    started: tuple[ServeProcess, str],
) -> None:
    process, url = started
    server = Server(url, process.process.pid)
    num_lines = len(process.log)
    ends: Counter[str] = Counter()

    async def scenario() -> None:
        is_over = asyncio.Event()
        clients = [asyncio.create_task(send_edits(url, ends, is_over)) for _ in range(NUM_CLIENTS)]
        for _ in range(2):
            num_done = ends["200 done"]
            while ends["200 done"] < num_done + NUM_CLIENTS:
                await asyncio.sleep(0.01)
            engine = server.engine_id()
            assert engine is not None
            os.kill(engine, signal.SIGKILL)
            while server.engine_id() in (None, engine):
                await asyncio.sleep(0.01)
            while await asyncio.to_thread(readiness, url) != "ready":
                await asyncio.sleep(0.05)
        is_over.set()
        await asyncio.gather(*clients)

    asyncio.run(asyncio.wait_for(scenario(), 2 * LIMIT_S))
    assert set(ends) == {"200 done", "503 engine-lost"}
    assert ends["503 engine-lost"] >= 2, "those that were in it"
    unmodelled = httpx.post(f"{url}/v1/apply", json={**WORK, "use_model": "never"})
    assert unmodelled.json()["status"] == "applied"
    log = "".join(process.log[num_lines:])
    assert log.count("the engine ended by signal 9; it is started again") == 2
    assert log.count("the engine is back") == 2
    assert "Traceback" not in log


def test_while_there_is_no_engine_the_server_is_not_ready_and_alive(
    started: tuple[ServeProcess, str],
) -> None:
    process, url = started
    server = Server(url, process.process.pid)
    engine = server.engine_id()
    assert engine is not None
    os.kill(engine, signal.SIGSTOP)  # nothing is heard, and nothing is lost yet
    assert readiness(url) == "ready"
    os.kill(engine, signal.SIGKILL)
    wait_until(lambda: readiness(url) == "engine-lost")
    assert httpx.get(f"{url}/health/live").status_code == 200
    late = httpx.post(f"{url}/v1/apply", json={**WORK, "deadline_s": 1.0})
    assert late.status_code == 503
    assert late.headers["retry-after"]
    # An edit with time waits for the engine.
    assert httpx.post(f"{url}/v1/apply", json=WORK, timeout=LIMIT_S).status_code == 200
    assert readiness(url) == "ready"


def test_an_engine_that_hangs_voids_no_deadline_and_is_replaced(
    started: tuple[ServeProcess, str],
) -> None:
    process, url = started
    server = Server(url, process.process.pid)
    num_lines = len(process.log)
    engine = server.engine_id()
    assert engine is not None

    def send(number: int) -> str:
        work = {**WORK, "deadline_s": 2.0 if number % 4 else 100.0}
        answer = httpx.post(f"{url}/v1/apply", json=work, timeout=2 * LIMIT_S)
        return f"{answer.status_code} {answer.json()['code']}"

    os.kill(engine, signal.SIGSTOP)
    with ThreadPoolExecutor(NUM_HANGING) as threads:
        ends = Counter(threads.map(send, range(NUM_HANGING)))
    assert ends == {
        "504 deadline-exceeded": NUM_HANGING * 3 // 4,
        "503 engine-lost": NUM_HANGING // 4,
    }
    wait_until(lambda: "ended by signal 9; it is started again" in "".join(process.log[num_lines:]))
    assert f"the engine was silent for {STALL_S} s" in "".join(process.log[num_lines:])
    wait_until(lambda: readiness(url) == "ready")
    assert server.engine_id() not in (None, engine)
    assert httpx.post(f"{url}/v1/apply", json=WORK, timeout=LIMIT_S).status_code == 200


def test_a_server_is_not_ready_while_its_engine_is_silent(
    started: tuple[ServeProcess, str],
) -> None:
    process, url = started
    engine = Server(url, process.process.pid).engine_id()
    assert engine is not None
    os.kill(engine, signal.SIGSTOP)
    wait_until(lambda: readiness(url) == "engine-stalled")
    assert httpx.get(f"{url}/health/live").status_code == 200
    late = httpx.post(f"{url}/v1/apply", json={**WORK, "deadline_s": 1.0}, timeout=LIMIT_S)
    assert (late.status_code, late.json()["code"]) == (504, "deadline-exceeded")
    os.kill(engine, signal.SIGCONT)
    wait_until(lambda: readiness(url) == "ready")
    assert Server(url, process.process.pid).engine_id() == engine
    assert httpx.post(f"{url}/v1/apply", json=WORK, timeout=LIMIT_S).status_code == 200


def test_a_killed_server_leaves_no_engine_behind(started: tuple[ServeProcess, str]) -> None:
    process, url = started
    children = Server(url, process.process.pid).children()
    assert children
    process.process.kill()
    wait_until(lambda: not any(map(is_running, children)))


def test_in_one_process_there_is_no_other(tiny_model_dir: Path) -> None:
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]
    with serve_process(*flags, "--in-process", "true") as (process, url):
        process.wait_for("ready: model")
        assert Server(url, process.process.pid).engine_id() is None
        assert httpx.post(f"{url}/v1/apply", json=WORK, timeout=LIMIT_S).status_code == 200


def test_a_model_that_does_not_load_is_said_as_ever(tiny_model_dir: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in tiny_model_dir.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.safetensors").write_bytes(b"not weights")
    with serve_process("--model", str(broken), "--profile", "embedded", "--port", "0") as (
        process,
        url,
    ):
        process.wait_for("the model cannot be served: .*broken could not be loaded")
        assert readiness(url) == "model-failed"
        assert Server(url, process.process.pid).engine_id() is None
