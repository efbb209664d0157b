"""Every address says in its own shape that a server has too much to do, and when to come back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving
from tagged_edit import MERGED, ORIGINAL, UPDATE, fields, tagged

LIMIT_S = 30.0
EDIT = {"original": ORIGINAL, "update": UPDATE}
NUM_AHEAD = 4
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("/v1/apply", EDIT),
    "stream": ("/v1/apply", EDIT | {"stream": True}),
    "openai": ("/v1/chat/completions", {"model": "auto", "messages": tagged()}),
    "relace": ("/v1/code/apply", fields()),
    "batch": ("/v1/batches", EDIT | {"id": "one", "deadline_s": 0.2}),
}


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(MERGED.split("\n")[:-1])
    return oracle


@pytest.fixture
def crowded_url(oracle: OracleService, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server whose edits take a while, with some under way that do not end by themselves."""
    with serving(oracle.service) as url:
        oracle.runner.step_s = 0.3
        assert httpx.post(f"{url}/v1/apply", json=EDIT, timeout=LIMIT_S).status_code == 200
        oracle.runner.step_s = 0.0
        oracle.runner.gate.clear()
        statuses: list[int] = []

        def ask() -> None:
            answer = httpx.post(f"{url}/v1/apply", json=EDIT, timeout=LIMIT_S)
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=ask) for _ in range(NUM_AHEAD)]
        for thread in threads:
            thread.start()
        engine = oracle.service.served.engine
        while engine.stats().num_running + engine.stats().num_waiting < NUM_AHEAD:
            time.sleep(0.01)
        monkeypatch.setattr(oracle.service, "_default_deadline_s", 0.2)
        yield url
        oracle.runner.gate.set()
        for thread in threads:
            thread.join()
        assert statuses == [200] * NUM_AHEAD, "nobody is harmed who came before"


@pytest.mark.parametrize("kind", REQUESTS)
def test_an_edit_that_others_make_late_is_503_with_a_time_to_come_back(
    crowded_url: str, kind: str
) -> None:
    path, body = REQUESTS[kind]
    content = json.dumps(body)
    headers = {"Content-Type": "application/json"}
    answer = httpx.post(f"{crowded_url}{path}", content=content, headers=headers, timeout=LIMIT_S)
    found = answer.json()
    if kind == "batch":
        assert answer.status_code == 200
        found = found["problem"]
        assert found["status"] == 503
        assert found["retry_after_s"] > 0
    else:
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["Retry-After"]) >= 1
    if kind == "openai":
        found = found["error"]
        assert found["type"] == "server_error"
    message = found.get("detail") or found.get("message") or found.get("error")
    assert found["code"] == "overloaded"
    assert "the requests before this one take about" in message
    assert "`Retry-After`" in message
