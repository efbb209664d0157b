"""`/health/live` says when the engine is stuck, over real HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from oracle_service import MODEL_NAME, OracleService
from server_thread import serving

from apply_service.service import ApplyService

WORK = {
    "original": "def name(path):\n    return path\n",
    "update": "# ...\n    return path.lower()\n",
    "constraint": "none",
}
SOON_S = 10.0


@contextmanager
def stall_service(tiny_model_dir: Path, *, stall_s: float) -> Iterator[tuple[OracleService, str]]:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(["def name(path):", "    return path.lower()"])
    service = ApplyService(
        oracle.load,
        model_name=MODEL_NAME,
        limits=oracle.limits,
        default_deadline_s=20,
        drain_s=5,
        default_use_model="always",
        stall_s=stall_s,
    )
    with serving(service) as url:
        yield oracle, url


def wait_for(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_live_fails_while_the_engine_is_stuck(tiny_model_dir: Path) -> None:
    with (
        stall_service(tiny_model_dir, stall_s=0.2) as (oracle, url),
        httpx.Client(base_url=url) as client,
    ):
        time.sleep(0.5)
        assert client.get("/health/live").json() == {"status": "live"}, "idle is not stuck"
        oracle.runner.gate.clear()
        answers: list[int] = []
        thread = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{url}/v1/apply", json=WORK).status_code)
        )
        thread.start()
        wait_for(lambda: client.get("/health/live").status_code == 503)
        problem = client.get("/health/live").json()
        assert problem["code"] == "engine-stalled"
        assert "no step for" in problem["detail"]
        oracle.runner.gate.set()
        thread.join()
        assert answers == [200]
        wait_for(lambda: client.get("/health/live").status_code == 200)


def test_live_holds_while_steps_are_made(tiny_model_dir: Path) -> None:
    with stall_service(tiny_model_dir, stall_s=5.0) as (oracle, url):
        oracle.runner.step_s = 0.01
        thread = threading.Thread(
            target=lambda: httpx.post(f"{url}/v1/apply", json={**WORK, "speculation": "off"})
        )
        thread.start()
        while thread.is_alive():
            assert httpx.get(f"{url}/health/live").status_code == 200
        thread.join()


def test_live_fails_for_good_once_the_engine_has_failed(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("a mistake of ours")

    with stall_service(tiny_model_dir, stall_s=5.0) as (_, url):
        assert httpx.get(f"{url}/health/live").status_code == 200
        monkeypatch.setattr("batching.scheduler.Scheduler.schedule", fail)
        assert httpx.post(f"{url}/v1/apply", json=WORK).status_code == 503
        wait_for(lambda: httpx.get(f"{url}/health/live").status_code == 503)
