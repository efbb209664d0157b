"""Two replicas behind real balancers: files keep their replica, and no edit is lost with one."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from apply_client import (
    APIConnectionError,
    ApplyClient,
    ApplyOptions,
    ApplyResult,
    Edit,
    RetryPolicy,
    Token,
)
from apply_client.edit import Sampling
from balancer import FOLDER, balancer, missing_reason
from fleet_traffic import home_of_files, replicas, send_edits
from serve_process import ServeProcess

KINDS = ["nginx", "haproxy"]
NUM_FILES = 12
NUM_EDITS = 80
Replicas = list[tuple[ServeProcess, str]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    reason = missing_reason(name)
    if reason is not None:
        pytest.skip(reason)
    return name


@pytest.fixture
def pair(tiny_model_dir: Path) -> Iterator[Replicas]:
    with replicas(tiny_model_dir, 2, num_files=NUM_FILES) as started:
        yield started


@pytest.mark.skipif(all(map(missing_reason, KINDS)), reason="neither nginx nor haproxy")
def test_two_replicas_answer_and_each_file_has_one(tiny_model_dir: Path) -> None:
    kind = next(kind for kind in KINDS if missing_reason(kind) is None)
    with replicas(tiny_model_dir, 2, num_files=4) as pair:
        urls = [url for _, url in pair]
        with balancer(kind, urls) as front:
            first = asyncio.run(home_of_files(front, urls[0], num_files=4))
            assert asyncio.run(home_of_files(front, urls[0], num_files=4)) == first


@pytest.mark.fleet
def test_files_keep_their_replica_and_its_cache(kind: str, pair: Replicas) -> None:
    urls = [url for _, url in pair]

    async def scenario() -> None:
        with balancer(kind, urls) as front:
            first = await home_of_files(front, urls[0], num_files=NUM_FILES)
            assert 0 < sum(first) < NUM_FILES, "all files went to one replica"
            assert await home_of_files(front, urls[0], num_files=NUM_FILES) == first
            options = {"count": NUM_EDITS, "num_files": NUM_FILES}
            scattered = await send_edits(front, names_file=False, **options)
            together = await send_edits(front, **options)
        assert together.endings == scattered.endings == {"200": NUM_EDITS}
        assert together.cached_share > scattered.cached_share

    asyncio.run(scenario())


@pytest.mark.fleet
def test_a_replica_that_dies_loses_no_edit_and_moves_its_files_alone(
    kind: str, pair: Replicas
) -> None:
    (doomed, doomed_url), (_, other_url) = pair

    async def scenario() -> None:
        with balancer(kind, [doomed_url, other_url]) as front:
            before = await home_of_files(front, other_url, num_files=NUM_FILES)
            load = asyncio.create_task(send_edits(front, count=NUM_EDITS, num_files=NUM_FILES))
            await asyncio.sleep(0.5)
            assert not load.done()
            doomed.kill()
            endings = (await load).endings
            after = await home_of_files(front, other_url, num_files=NUM_FILES)
        assert endings == {"200": NUM_EDITS}
        assert all(after)
        moved = sum(one != other for one, other in zip(before, after, strict=True))
        assert moved == NUM_FILES - sum(before)

    asyncio.run(scenario())


@pytest.mark.fleet
def test_a_replica_that_is_told_to_stop_loses_no_edit(kind: str, pair: Replicas) -> None:
    (leaving, leaving_url), (_, other_url) = pair

    async def scenario() -> None:
        with balancer(kind, [leaving_url, other_url]) as front:
            load = asyncio.create_task(send_edits(front, count=NUM_EDITS, num_files=NUM_FILES))
            await asyncio.sleep(0.5)
            leaving.process.send_signal(signal.SIGTERM)
            assert (await load).endings == {"200": NUM_EDITS}
        assert leaving.end() == 0

    asyncio.run(scenario())


@pytest.mark.fleet
def test_a_stream_that_has_begun_is_not_begun_again(kind: str, pair: Replicas) -> None:
    edit = Edit(
        "one = 1\n",
        "# ... existing code ...\ntwo = 2\n",
        path="file.py",
        options=ApplyOptions(
            use_model="always",
            constraint="none",
            scope="file",
            checks="off",
            speculation="off",
            sampling=Sampling(max_tokens=1500),
            deadline_s=60.0,
        ),
    )
    seen: list[object] = []

    def read(front: str) -> None:
        client = ApplyClient(front, retry=RetryPolicy(timeout_s=60.0))
        with client.stream(edit) as events:
            for event in events:
                seen.append(type(event))
                if seen.count(Token) == 3:
                    for server, _ in pair:
                        server.process.kill()

    with balancer(kind, [url for _, url in pair]) as front, pytest.raises(APIConnectionError):
        read(front)
    assert seen.count(Token) >= 3
    assert ApplyResult not in seen


def test_envoys_configuration_has_the_header_of_the_others() -> None:
    """Envoy itself is not run here."""
    envoy = json.dumps(yaml.safe_load((FOLDER / "envoy.yaml").read_text()))
    assert '"header_name": "x-apply-affinity"' in envoy
    assert '"lb_policy": "RING_HASH"' in envoy
    for name in ("nginx.conf", "haproxy.cfg"):
        text = (FOLDER / name).read_text().lower().replace("_", "-")
        assert "x-apply-affinity" in text
