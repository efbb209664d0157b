"""Wrong and odd requests: each is answered, by no failure of the server, which goes on.

`python tests/oracle.py service.fuzzed_bodies` sends a thousand to each route, and
`service.expanding_bodies` measures what small bodies with large texts cost; `service.byte_fidelity`
sends thousands of odd files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from byte_edits import byte_edits, shown_edit
from expanding_requests import expanding_requests
from fuzzed_requests import ROUTES, Tally, fuzzed_requests, send_fuzzed
from guarded_server import guarded

from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from apply_service.service import ApplyService

REQUESTS_A_ROUTE = 20
NUM_EXPANDING = 45
NUM_BYTE_EDITS = 120
EDIT = {"original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n", "use_model": "never"}


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(
        model=str(tiny_model_dir), profile="embedded", threads=1, kv_memory=8 << 20, device="cpu"
    )
    service = ApplyService(
        partial(load_served_model, settings, report=lambda _stage: None),
        model_name=tiny_model_dir.name,
        limits=PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64),
        default_deadline_s=20.0,
        drain_s=5.0,
    )
    with guarded(service, tmp_path_factory.mktemp("keys")) as server:
        yield server.url


@pytest.mark.parametrize("route", ROUTES)
def test_wrong_requests(url: str, route: str) -> None:
    tally = Tally()
    for request in fuzzed_requests(route, count=REQUESTS_A_ROUTE, seed=20):
        send_fuzzed(url, request, tally)
    assert not tally.faults
    assert tally.statuses.total() == REQUESTS_A_ROUTE
    answer = httpx.post(f"{url}/v1/apply", json=EDIT, timeout=60)
    assert (answer.status_code, answer.json()["merged"]) == (200, "a = 1\nb = 3\n")


def test_small_requests_that_stand_for_large_texts(url: str) -> None:
    tally = Tally()
    for request in expanding_requests(count=NUM_EXPANDING, seed=20):
        send_fuzzed(url, request, tally)
    assert not tally.faults
    assert tally.statuses.total() == NUM_EXPANDING
    assert tally.statuses["413"] >= NUM_EXPANDING / 5


def test_bytes_outside_an_edit_stay(url: str) -> None:
    num_applied = 0
    with httpx.Client(base_url=url, timeout=60) as client:
        for edit in byte_edits(count=NUM_BYTE_EDITS, seed=20):
            answer = client.post("/v1/apply", json=edit.body)
            if answer.status_code == 200 and answer.json()["status"] == "applied":
                result = edit.result_of(answer.json())
                assert result in edit.results, shown_edit(edit, result)
                num_applied += 1
    assert num_applied >= 0.9 * NUM_BYTE_EDITS
