"""HTTP over the real engine and a tiny random model: what it writes has no merit, but is real."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_thread import serving

from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from apply_service.service import ApplyService

WAIT_S = 60.0
EDIT: dict[str, Any] = {
    "original": "".join(f"line_{number} = {number}\n" for number in range(20)),
    "update": "# ... existing code ...\nline_18 = 18\nline_19 = 20\n",
    "checks": "off",
    "sampling": {"max_tokens": 48},
}


def say_nothing(_stage: str) -> None:
    """Loading a tiny model has no stages worth telling."""


@pytest.fixture
def service(tiny_model_dir: Path) -> ApplyService:
    settings = Settings(
        model=str(tiny_model_dir), profile="embedded", threads=1, kv_memory=8 << 20, device="cpu"
    )
    return ApplyService(
        partial(load_served_model, settings, report=say_nothing),
        model_name=tiny_model_dir.name,
        limits=PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64),
        default_deadline_s=WAIT_S,
        drain_s=5.0,
        default_use_model="always",
    )


def test_speculation_writes_the_same_text(service: ApplyService) -> None:
    with serving(service) as url:
        for sampling in ({"max_tokens": 48}, {"max_tokens": 48, "temperature": 0.8, "seed": 7}):
            merged = [
                httpx.post(
                    f"{url}/v1/apply",
                    json={**EDIT, "sampling": sampling, "speculation": speculation},
                    timeout=WAIT_S,
                ).json()["merged"]
                for speculation in ("on", "off")
            ]
            assert merged[0] == merged[1]
            assert merged[0]


def test_a_random_model_is_never_trusted(service: ApplyService) -> None:
    free = {**EDIT, "constraint": "none"}
    with serving(service) as url:
        bound, raw, checked = (
            httpx.post(f"{url}/v1/apply", json=edit, timeout=WAIT_S).json()
            for edit in (EDIT, free, {**free, "checks": "on"})
        )
    merged = EDIT["original"].replace("line_19 = 19", "line_19 = 20")
    assert (bound["status"], bound["source"], bound["merged"]) == ("needs_review", "model", merged)
    assert raw["status"] in ("needs_review", "rejected")
    assert (raw["source"], raw["merged"] == merged) == ("model", False)
    assert (checked["status"], checked["source"], checked["merged"]) == ("applied", "merge", merged)
    assert checked["usage"]["completion_tokens"] > 0


def test_a_random_model_does_not_settle_an_open_place(service: ApplyService) -> None:
    body = {**EDIT, "original": "a = 1\nb = 1\n\na = 1\nc = 1\n", "checks": "on"}
    body["update"] = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
    with serving(service) as url:
        result = httpx.post(f"{url}/v1/apply", json=body, timeout=WAIT_S).json()
    assert result["status"] == "needs_review"
    assert result["source"] == "merge"
    assert "ambiguous_place" in {finding["code"] for finding in result["findings"]}


def test_a_client_that_leaves_frees_every_block(service: ApplyService) -> None:
    body = {**EDIT, "stream": True, "speculation": "off", "sampling": {"max_tokens": 2000}}
    with serving(service) as url:
        with httpx.stream("POST", f"{url}/v1/apply", json=body, timeout=WAIT_S) as response:
            assert "event: token" in response.iter_lines()
        deadline = time.monotonic() + WAIT_S
        stats = service.served.engine.stats()
        while not stats.cancelled or stats.num_free_blocks != stats.num_blocks:
            assert time.monotonic() < deadline, stats
            time.sleep(0.01)
            stats = service.served.engine.stats()
        assert stats.finished == 0
