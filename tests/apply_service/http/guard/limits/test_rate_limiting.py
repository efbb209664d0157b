"""Limits over real HTTP: 429 with the time to come back, by key, also across replicas."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_server import PRIVATE, GuardedServer, guarded
from oracle_service import OracleService
from redis_process import RedisProcess, find_redis_server

from apply_service.http.guard.keys.authentication import AccessRules
from apply_service.http.guard.keys.key_file import KeyFile
from apply_service.http.guard.limits.count_store import RedisCounts
from apply_service.http.guard.limits.rate_limits import RateLimits, RateLimitSettings
from batching.cache.redis.url import parse_redis_url

ORIGINAL = "a = 1\nb = 2\n"
EDIT = {"original": ORIGINAL, "update": "a = 1\nb = 3\n", "use_model": "never"}
# The model has to write this one.
WORK = {
    "original": "import os\n\n\ndef name(path):\n    return path\n",
    "update": "# ... existing code ...\ndef name(path):\n    return path.lower()\n",
    "constraint": "none",
}
MERGED = ["import os", "", "", "def name(path):", "    return path.lower()"]
ANYBODY = AccessRules(is_private=False, allows_anonymous=True, metrics_need_key=True)
WAIT_S = 10.0


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir, max_running=1, max_waiting=2)
    oracle.will_answer(MERGED)
    return oracle


def limits_of(requests: int = 0, tokens: int = 0, running: int = 0) -> RateLimitSettings:
    return RateLimitSettings(
        requests_per_minute=requests, tokens_per_minute=tokens, max_concurrent=running
    )


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    file = KeyFile(tmp_path / "keys.json")
    return file.create("one", ("apply",)).text, file.create("two", ("apply",)).text


def refused(response: httpx.Response, code: str = "rate-limited") -> dict[str, Any]:
    assert response.status_code == 429, response.text
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code
    assert int(response.headers["retry-after"]) >= problem["retry_after_s"] > 0
    return problem


def test_requests_a_minute(oracle: OracleService, tmp_path: Path, keys: tuple[str, str]) -> None:
    limits = RateLimits(limits_of(requests=3), clock=lambda: 1_800_000_000.0)
    with (
        guarded(oracle.service, tmp_path, limits=limits) as server,
        server.client(keys[0]) as one,
        server.client(keys[1]) as two,
    ):
        for remaining in (2, 1, 0):
            response = one.post("/v1/apply", json=EDIT)
            assert response.status_code == 200
            assert response.headers["x-ratelimit-limit-requests"] == "3"
            assert response.headers["x-ratelimit-remaining-requests"] == str(remaining)
            assert one.get("/v1/models").status_code == 200  # costs nothing
        problem = refused(response := one.post("/v1/apply", json=EDIT))
        assert (problem["value"], problem["limit"]) == (3, 3)
        # Three at the first instant of a minute: one is forgotten 20 s into the next one.
        assert response.headers["retry-after"] == "80"
        assert response.headers["x-ratelimit-remaining-requests"] == "0"
        assert one.post("/v1/chat/completions").json()["error"]["type"] == "rate_limit_error"
        assert two.post("/v1/apply", json=EDIT).status_code == 200


def test_tokens_a_minute(oracle: OracleService, tmp_path: Path, keys: tuple[str, str]) -> None:
    limits = RateLimits(limits_of(tokens=20))
    with guarded(oracle.service, tmp_path, limits=limits) as server, server.client(keys[0]) as one:
        usage = one.post("/v1/apply", json=WORK).json()["usage"]
        assert usage["total_tokens"] > 20
        problem = refused(one.post("/v1/apply", json=EDIT))
        assert problem["value"] == usage["total_tokens"]
        assert "tokens a minute" in problem["detail"]


def test_streams_are_charged_too(
    oracle: OracleService, tmp_path: Path, keys: tuple[str, str]
) -> None:
    limits = RateLimits(limits_of(tokens=20, running=1))
    with guarded(oracle.service, tmp_path, limits=limits) as server, server.client(keys[0]) as one:
        assert "event: result" in one.post("/v1/apply", json={**WORK, "stream": True}).text
        refused(one.post("/v1/apply", json={**WORK, "stream": True}))


def answers_to(client: httpx.Client, lines: list[bytes]) -> list[dict[str, Any]]:
    """What a batch of these lines is answered with, in their order."""
    response = client.post("/v1/batches", content=b"\n".join(lines))
    assert response.status_code == 200, response.text
    answers = [json.loads(line) for line in response.text.splitlines()]
    return sorted(answers, key=lambda answer: int(answer["line"]))


def test_each_line_of_a_batch_is_a_request(oracle: OracleService, tmp_path: Path) -> None:
    key = KeyFile(tmp_path / "keys.json").create("one", ("apply", "batch")).text
    limits = RateLimits(limits_of(requests=5), clock=lambda: 1_800_000_000.0)
    lines = [json.dumps({**EDIT, "id": str(number), "deadline_s": 60}) for number in range(8)]
    lines[1] = "this is no edit"
    with guarded(oracle.service, tmp_path, limits=limits) as server, server.client(key) as one:
        answers = answers_to(one, [line.encode() for line in lines])
        assert len(answers) == 8
        refusals = [answer["problem"] for answer in answers[4:]]
        assert {problem["code"] for problem in refusals} == {"rate-limited"}, "the batch is one too"
        assert all((one["value"], one["limit"]) == (5, 5) for one in refusals)
        assert all(one["retry_after_s"] > 60 for one in refusals), "no use in waiting for it"
        codes = [answer.get("problem", {}).get("code") for answer in answers[:4]]
        assert codes == [None, "invalid-json", None, None]
        refused(one.post("/v1/apply", json=EDIT))


def test_lines_of_a_batch_are_charged_before_the_work(
    oracle: OracleService, tmp_path: Path
) -> None:
    """Lines that would all be under way at once: the first one uses up what there is."""
    key = KeyFile(tmp_path / "keys.json").create("one", ("batch",)).text
    limits = RateLimits(limits_of(tokens=20), clock=lambda: 1_800_000_000.0)
    lines = [json.dumps({**WORK, "id": str(number), "deadline_s": 60}) for number in range(6)]
    with guarded(oracle.service, tmp_path, limits=limits) as server, server.client(key) as one:
        answers = answers_to(one, [line.encode() for line in lines])
        done = [answer["result"] for answer in answers if "result" in answer]
        codes = [answer["problem"]["code"] for answer in answers if "problem" in answer]
        assert codes == ["rate-limited"] * 5
        assert oracle.service.served.engine.stats().finished == 1
        problem = refused(one.post("/v1/batches"))
        assert problem["value"] == done[0]["usage"]["total_tokens"]


def in_background(client: httpx.Client, body: dict[str, Any]) -> tuple[threading.Thread, list[int]]:
    statuses: list[int] = []

    def post() -> None:
        statuses.append(client.post("/v1/apply", json=body).status_code)

    thread = threading.Thread(target=post)
    thread.start()
    return thread, statuses


def wait_for(is_done: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_requests_at_the_same_time(
    oracle: OracleService, tmp_path: Path, keys: tuple[str, str]
) -> None:
    limits = RateLimits(limits_of(running=1))
    with (
        guarded(oracle.service, tmp_path, limits=limits) as server,
        server.client(keys[0]) as one,
        server.client(keys[1]) as two,
    ):
        oracle.runner.gate.clear()
        thread, statuses = in_background(one, WORK)
        wait_for(lambda: num_held(oracle) == 1)
        refused(one.post("/v1/apply", json=EDIT))
        assert two.post("/v1/apply", json=EDIT).status_code == 200
        oracle.runner.gate.set()
        thread.join()
        assert statuses == [200]
        wait_for(lambda: one.post("/v1/apply", json=EDIT).status_code == 200)


def test_a_full_queue_says_when_to_come_back(oracle: OracleService, tmp_path: Path) -> None:
    slow = {**WORK, "speculation": "off"}
    with guarded(oracle.service, tmp_path, rules=PRIVATE) as server, server.client() as client:
        oracle.runner.step_s = 0.005
        timing = client.post("/v1/apply", json=slow).json()["timing"]
        running = [in_background(client, slow) for _ in range(3)]
        wait_for(lambda: num_held(oracle) == 3)
        problem = refused(client.post("/v1/apply", json=slow), "queue-full")
        # One runs, and of the two that wait half must have had their turn.
        seconds = timing["prefill"] + timing["decode"]
        assert seconds / 2 < problem["retry_after_s"] <= seconds
        for thread, statuses in running:
            thread.join()
            assert statuses == [200]


def num_held(oracle: OracleService) -> int:
    """Requests that the engine has."""
    stats = oracle.service.served.engine.stats()
    return stats.num_running + stats.num_waiting


def test_nobody_without_a_key_takes_from_those_with_one(
    oracle: OracleService, tmp_path: Path, keys: tuple[str, str]
) -> None:
    limits = RateLimits(limits_of(requests=1))
    with (
        guarded(oracle.service, tmp_path, rules=ANYBODY, limits=limits) as server,
        server.client() as anybody,
        server.client(keys[0]) as one,
    ):
        assert anybody.post("/v1/apply", json=EDIT).status_code == 200
        refused(anybody.post("/v1/apply", json=EDIT))
        assert one.post("/v1/apply", json=EDIT).status_code == 200


@pytest.fixture
def redis() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.kill()


@pytest.mark.redis
@pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")
def test_replicas_share_a_limit_until_their_redis_dies(
    tiny_model_dir: Path, tmp_path: Path, keys: tuple[str, str], redis: RedisProcess
) -> None:
    with ExitStack() as stack:
        servers: list[GuardedServer] = []
        for _ in range(2):
            shared = RedisCounts(parse_redis_url(redis.url), timeout_s=5.0)
            limits = RateLimits(limits_of(requests=4), shared=shared, timeout_s=5.0)
            service = OracleService(tiny_model_dir).service
            servers.append(stack.enter_context(guarded(service, tmp_path, limits=limits)))
        clients = [stack.enter_context(server.client(keys[0])) for server in servers]
        for client in (*clients, *clients):
            assert client.post("/v1/apply", json=EDIT).status_code == 200
        for client in clients:
            refused(client.post("/v1/apply", json=EDIT))
        redis.kill()
        # Each has let in two of its four.
        for client in clients:
            statuses = [client.post("/v1/apply", json=EDIT).status_code for _ in range(3)]
            assert statuses == [200, 200, 429]
        redis.start()
