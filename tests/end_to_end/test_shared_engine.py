"""Two servers with one engine: `apply-service engine`, real processes, a real socket."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve_process import ServeProcess, serve_process, wait_until_ready
from tiny_model import write_tiny_model

LIMIT_S = 60.0
WORK: dict[str, Any] = {
    "original": "one = 1\ntwo = 2\n",
    "update": "# ... existing code ...\ntwo = 3\n",
    "checks": "off",
    "use_model": "always",
    "constraint": "none",
    "scope": "file",
    "sampling": {"max_tokens": 40},
}


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory, tiny_model_dir: Path) -> list[str]:
    model = ["--model", str(tiny_model_dir), "--profile", "embedded"]
    return [*model, "--engine-socket", str(tmp_path_factory.mktemp("shared") / "engine.sock")]


@pytest.fixture(scope="module")
def engine(flags: list[str]) -> Iterator[ServeProcess]:
    """An engine that tests share; the last one kills it."""
    engine = ServeProcess(*flags, command="engine")
    yield engine
    engine.kill()


def edit(url: str) -> tuple[int, str]:
    answer = httpx.post(f"{url}/v1/apply", json=WORK, timeout=LIMIT_S)
    return answer.status_code, answer.json().get("merged") or answer.json()["code"]


def test_a_second_engine_and_another_model_are_refused(
    flags: list[str], engine: ServeProcess, tmp_path: Path
) -> None:
    engine.wait_for("is served at")
    second = ServeProcess(*flags, command="engine")
    assert second.end() == 1
    assert "listens at" in "".join(second.log)
    (tmp_path / "other").mkdir()
    write_tiny_model(tmp_path / "other", seed=1)
    other = ["--model", str(tmp_path / "other"), *flags[2:]]
    with serve_process(*other, "--port", "0") as (server, url):
        server.wait_for("serves another model")
        answer = httpx.post(f"{url}/v1/apply", json=WORK, timeout=LIMIT_S)
        assert (answer.status_code, answer.json()["code"]) == (503, "model-failed")


def test_two_servers_share_an_engine_and_outlive_it(flags: list[str], engine: ServeProcess) -> None:
    with (
        serve_process(*flags, "--port", "0") as (_, first),
        serve_process(*flags, "--port", "0") as (_, second),
    ):
        urls = (first, second)
        for url in urls:
            wait_until_ready(url)
        with ThreadPoolExecutor(8) as threads:
            answers = set(threads.map(edit, urls * 8))
        assert len(answers) == 1, "whichever server is asked, and beside whatever else"
        assert answers.pop()[0] == 200
        metrics = [httpx.get(f"{url}/metrics").text for url in urls]
        assert all("apply_kv_cache_blocks" in text for text in metrics)

        engine.kill()
        for url in urls:
            while httpx.get(f"{url}/health/ready?model=ready").status_code == 200:
                pass
        again = ServeProcess(*flags, command="engine")
        try:
            for url in urls:
                wait_until_ready(url)
                assert edit(url)[0] == 200
        finally:
            again.process.send_signal(signal.SIGTERM)
            assert again.end() == 0, "".join(again.log)


def test_a_shared_engine_that_hangs_is_left_alone_and_found_again(flags: list[str]) -> None:
    engine = ServeProcess(*flags, command="engine")
    try:
        with serve_process(*flags, "--port", "0", "--stall-s", "6") as (server, url):
            wait_until_ready(url)
            engine.process.send_signal(signal.SIGSTOP)
            late = httpx.post(f"{url}/v1/apply", json={**WORK, "deadline_s": 2.0}, timeout=LIMIT_S)
            assert (late.status_code, late.json()["code"]) == (504, "deadline-exceeded")
            answer = httpx.post(f"{url}/v1/apply", json={**WORK, "deadline_s": 90}, timeout=100.0)
            assert (answer.status_code, answer.json()["code"]) == (503, "engine-lost")
            assert httpx.get(f"{url}/health/ready").json()["code"] == "engine-lost"
            engine.process.send_signal(signal.SIGCONT)
            wait_until_ready(url)
            assert edit(url)[0] == 200
            assert "the engine was silent for 6 s" in "".join(server.log)
    finally:
        engine.kill()


def test_an_engine_needs_a_socket() -> None:
    engine = ServeProcess(command="engine")
    assert engine.end() == 2
    assert "--engine-socket PATH" in "".join(engine.log)
