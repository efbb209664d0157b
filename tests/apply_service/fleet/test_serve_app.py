"""Two replicas behind Ray Serve: routes, affinity, deaths, draining and autoscaling."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.fleet.ray_cluster import RayCluster

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.timeout(400),
    # Of Ray's own models, when they are imported.
    pytest.mark.filterwarnings("ignore:Using extra keyword arguments on `Field`"),
]

NUM_FILES = 40
NUM_REQUESTS = 500
NUM_CLIENTS = 4
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def cluster(ray_node: RayCluster, settings: dict[str, Any]) -> RayCluster:
    ray_node.deploy(settings, num_replicas=2)
    return ray_node


@pytest.fixture(scope="module")
def settings(tiny_model_dir: Path) -> dict[str, Any]:
    """A replica that holds the prompts of about three quarters of the files, and nothing else."""
    return {
        "model": str(tiny_model_dir),
        "profile": "embedded",
        "device": "cpu",
        "dtype": "float32",
        "threads": 1,
        "kv_memory": "4MiB",
        "cache_memory": 0,
        "text_workers": 1,
        "use_model": "always",
        "allow_anonymous": True,
        "requests_per_minute": 0,
        "tokens_per_minute": 0,
        "max_concurrent": 0,
        "deadline_s": 100,  # replicas start beside their edits
        "drain_s": 20,
    }


@dataclass(frozen=True)
class Ending:
    """How a request ended, and what it found in the cache."""

    status: int | str
    file: int
    cached: int = 0
    prompt: int = 0


def body_of(file: int, **changes: Any) -> dict[str, Any]:
    return {
        "original": "".join(f"file_{file}_line_{line} = {line}\n" for line in range(20)),
        "update": "# ... existing code ...\nfile_line_18 = 18\nfile_line_19 = 20\n",
        "scope": "file",
        "constraint": "none",
        "checks": "off",
        "sampling": {"max_tokens": 1},
        **changes,
    }


def affinity_of(key: str) -> dict[str, str]:
    return {"X-Apply-Affinity": hashlib.sha256(key.encode()).hexdigest()}


def send(client: httpx.Client, file: int, headers: dict[str, str]) -> Ending:
    """One edit; every way in which a server or a connection can end it is told apart."""
    try:
        response = client.post("/v1/apply", json=body_of(file), headers=headers)
    except httpx.TransportError as error:
        return Ending(type(error).__name__, file)
    if response.status_code != 200:
        return Ending(response.status_code, file)
    usage = response.json()["usage"]
    return Ending(200, file, usage["cached_tokens"], usage["prompt_tokens"])


def send_many(
    url: str,
    files: list[int],
    *,
    key: Callable[[int, int], str | None] = lambda _number, file: f"file-{file}",
    at: int = -1,
    do: Callable[[], None] = lambda: None,
) -> list[Ending]:
    """Send the edits from several clients; `do` is called before the `at`-th is sent.

    The affinity is made of the `key` of a request's number and file; None leaves it out.
    """
    with httpx.Client(base_url=url, timeout=LIMIT_S) as client:

        def one(number_and_file: tuple[int, int]) -> Ending:
            number, file = number_and_file
            if number == at:
                do()
            affinity = key(number, file)
            return send(client, file, {} if affinity is None else affinity_of(affinity))

        with ThreadPoolExecutor(NUM_CLIENTS) as threads:
            return list(threads.map(one, enumerate(files)))


def some_files(seed: int, count: int = NUM_REQUESTS) -> list[int]:
    return random.Random(seed).choices(range(NUM_FILES), k=count)


def hit_rate(endings: list[Ending]) -> float:
    """The share of prompt tokens, of all requests, that were in the cache."""
    return sum(one.cached for one in endings) / sum(one.prompt for one in endings)


def test_the_routes_are_those_of_the_service(cluster: RayCluster) -> None:
    with httpx.Client(base_url=cluster.url, timeout=LIMIT_S) as client:
        native = client.post("/v1/apply", json=body_of(0), headers={"X-Request-Id": "mine"})
        chat = client.post(
            "/v1/chat/completions",
            json={
                "model": "auto",
                "messages": [
                    {"role": "user", "content": "<code>a = 1\n</code>\n<update>a = 2\n</update>"}
                ],
            },
        )
        wrong = client.post("/v1/apply", json={"original": "a"})
        ready = client.get("/health/ready?model=ready")
        models = client.get("/v1/models")

    assert native.status_code == 200, native.text
    assert native.headers.get_list("x-request-id") == ["mine"]
    assert chat.status_code == 200, chat.text
    assert chat.json()["choices"][0]["message"]["content"] == "a = 2\n"
    assert (wrong.status_code, wrong.headers["content-type"]) == (400, "application/problem+json")
    assert ready.json() == {"status": "ready", "model": "ready"}
    assert models.status_code == 200


def test_events_come_while_the_answer_is_written(cluster: RayCluster) -> None:
    body = body_of(1, stream=True, sampling={"max_tokens": 400, "seed": 1})
    with (
        httpx.Client(base_url=cluster.url, timeout=LIMIT_S) as client,
        client.stream("POST", "/v1/apply", json=body, headers=affinity_of("file-1")) as response,
    ):
        pieces = list(response.iter_raw())

    text = b"".join(pieces).decode()
    events = [line for line in text.splitlines() if line.startswith("event: ")]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert len(pieces) > 1, "the answer came in one piece"
    assert events[-1] in ("event: result", "event: error"), events


def test_affinity_finds_more_prompts_than_chance_does(
    cluster: RayCluster,
) -> None:
    files = some_files(1)
    with_affinity = send_many(cluster.url, files)
    # Other files, in the same order: what is in the caches helps neither.
    others = [NUM_FILES + file for file in files]
    by_chance = send_many(cluster.url, others, key=lambda number, _file: f"request-{number}")

    assert {one.status for one in (*with_affinity, *by_chance)} == {200}
    print(f"affinity {hit_rate(with_affinity):.3f}, by chance {hit_rate(by_chance):.3f}")
    assert hit_rate(with_affinity) > hit_rate(by_chance) + 0.15
    assert hit_rate(with_affinity) > 0.75


def test_without_the_header_the_emptier_replica_takes_an_edit(cluster: RayCluster) -> None:
    endings = send_many(cluster.url, some_files(4, 60), key=lambda _number, _file: None)

    assert {one.status for one in endings} == {200}


def test_a_killed_replica_loses_its_own_requests_only(cluster: RayCluster) -> None:
    victim = next(iter(cluster.replicas().values()))

    files = some_files(2)
    endings = send_many(
        cluster.url, files, at=NUM_REQUESTS // 4, do=lambda: os.kill(victim, signal.SIGKILL)
    )

    counts = Counter(one.status for one in endings)
    print(counts)
    assert len(endings) == NUM_REQUESTS
    # What was under way in the victim, at most one request a client, and a turn after it.
    assert counts[200] >= NUM_REQUESTS - 2 * NUM_CLIENTS
    assert set(counts) <= {200, 503, "RemoteProtocolError", "ReadError"}
    cluster.wait_for_replicas(2, other_than=victim)
    after = send_many(cluster.url, [*range(NUM_FILES)])
    assert {one.status for one in after} == {200}


def test_a_replica_that_goes_finishes_its_requests(
    cluster: RayCluster, settings: dict[str, Any]
) -> None:
    files = some_files(3, 200)
    endings = send_many(
        cluster.url, files, at=50, do=lambda: cluster.deploy(settings, num_replicas=1)
    )

    assert Counter(one.status for one in endings) == {200: len(files)}
    cluster.wait_for_replicas(1)


def test_queued_tokens_bring_a_second_replica(
    cluster: RayCluster, settings: dict[str, Any]
) -> None:
    scaling = {
        "min_replicas": 1,
        "max_replicas": 2,
        "upscale_delay_s": 0,
        "look_back_period_s": 11,
        "policy": {
            "policy_function": "apply_service.fleet.autoscaling:QueuedTokensPolicy",
            "policy_kwargs": {"target_queued_tokens": 1},
        },
    }
    cluster.deploy(settings, autoscaling_config=scaling)
    is_enough = threading.Event()

    def keep_busy(client_number: int) -> set[int | str]:
        with httpx.Client(base_url=cluster.url, timeout=LIMIT_S) as client:
            statuses = set()
            while not is_enough.is_set():
                statuses.add(send(client, client_number, {}).status)
        return statuses

    with ThreadPoolExecutor(NUM_CLIENTS) as threads:
        statuses = [threads.submit(keep_busy, number) for number in range(NUM_CLIENTS)]
        try:
            cluster.wait_for_replicas(2)
        finally:
            is_enough.set()
    assert {status for one in statuses for status in one.result()} == {200}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"port": 8000}, ["port is 8000", "set http_options.port of Ray Serve"]),
        ({"modle": "embedded"}, ["unknown setting modle", "the nearest one is model"]),
        ({"max_running": 0}, ["max_running is 0", ">= 1"]),
    ],
)
def test_wrong_arguments_are_told_when_the_application_is_built(
    arguments: dict[str, Any], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_SERVE_SESSION_ID_HEADER_KEY", "x-apply-affinity")
    from apply_service.fleet.serve_app import build

    with pytest.raises(Exception) as raised:  # noqa: PT011
        build(arguments)
    for word in words:
        assert word in str(raised.value), json.dumps(str(raised.value))
