"""One line a request, whatever it came to, and nothing of the edit in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving

WAIT_S = 10.0
LINES = [f"value_{number} = {number}" for number in range(12)]
ORIGINAL = "\n".join(LINES) + "\n"
EDITED = [*LINES[:-1], "value_11 = 'hunter2'"]
EDIT: dict[str, Any] = {
    "original": ORIGINAL,
    "update": "# ... existing code ...\nvalue_11 = 'hunter2'\n",
    "path": "values.py",
    "scope": "file",
}


@pytest.fixture(scope="module")
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir)


@pytest.fixture(scope="module")
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as url:
        yield url


def lines_of(
    caplog: pytest.LogCaptureFixture, count: int = 1, *, level: int = logging.INFO
) -> list[dict[str, Any]]:
    """The fields of all request lines, once there are so many: an answer comes before its line."""
    deadline = time.monotonic() + WAIT_S
    while True:
        lines = [
            vars(one)
            for one in caplog.records
            if one.name == "apply_service.observe.request_log" and one.levelno == level
        ]
        if len(lines) >= count:
            return lines
        assert time.monotonic() < deadline, lines
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="apply_service.observe.request_log")


def test_an_edit(oracle: OracleService, url: str, caplog: pytest.LogCaptureFixture) -> None:
    oracle.will_answer(EDITED)
    result = httpx.post(f"{url}/v1/apply", json=EDIT).json()
    (line,) = lines_of(caplog)
    assert line["id"] == result["id"]
    assert (line["method"], line["route"], line["status"]) == ("POST", "/v1/apply", 200)
    assert line["verdict"] == result["status"] == "applied"
    assert line["prompt_tokens"] == result["usage"]["prompt_tokens"]
    assert line["output_tokens"] == result["usage"]["completion_tokens"]
    assert line["seconds"] >= result["timing"]["total"]
    assert "hunter2" not in caplog.text


def test_a_stream_is_logged_at_its_end(
    oracle: OracleService, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    oracle.will_answer(EDITED)
    httpx.post(f"{url}/v1/apply", json={**EDIT, "stream": True})
    (line,) = lines_of(caplog)
    assert line["verdict"] == "applied"
    assert line["output_tokens"] > 0


def test_a_problem_has_its_code(url: str, caplog: pytest.LogCaptureFixture) -> None:
    httpx.post(f"{url}/v1/apply", json={**EDIT, "update": " "})
    (line,) = lines_of(caplog)
    assert (line["status"], line["problem"]) == (400, "empty-update")
    assert "verdict" not in line


def test_a_body_that_cannot_be_read_has_a_code_too(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    httpx.post(f"{url}/v1/apply", json={**EDIT, "original": 1})
    (line,) = lines_of(caplog)
    assert (line["status"], line["problem"]) == (400, "invalid-field")


def test_a_rejected_edit_has_a_verdict_and_counts_once(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    update = "<<<<<<< SEARCH\nnothing = 1\n=======\nnothing = 2\n>>>>>>> REPLACE\n"
    httpx.post(f"{url}/v1/apply", json={**EDIT, "update": update})
    (line,) = lines_of(caplog)
    assert (line["status"], line["verdict"], line["problem"]) == (422, "rejected", "rejected")
    samples = httpx.get(f"{url}/metrics").text
    assert 'apply_requests_total{result="rejected"} 1.0' in samples


def test_unknown_addresses_share_one_route(url: str, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b"):
        httpx.get(f"{url}/{name}")
    assert {line["route"] for line in lines_of(caplog, 2)} == {"unknown"}
    assert 'route="unknown",status="404"} 2.0' in httpx.get(f"{url}/metrics").text


def test_made_up_methods_are_one_figure(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each of their own would be kept for ever, and a long one fill the log."""
    for number in range(3):
        httpx.request(f"MADE-UP-{number}" + "X" * 1000 * number, f"{url}/v1/models")
    assert {line["method"] for line in lines_of(caplog, 3)} == {"other"}
    figures = httpx.get(f"{url}/metrics").text
    assert "MADE-UP" not in figures
    assert 'method="other",route="unknown",status="405"} 3.0' in figures


def test_probes_and_scrapes_are_quiet(url: str, caplog: pytest.LogCaptureFixture) -> None:
    paths = {"/health/live", "/health/ready", "/metrics"}
    for path in paths:
        httpx.get(url + path)
    count = 3
    # Lines of the test before may still come.
    while not paths <= {line["route"] for line in lines_of(caplog, count, level=logging.DEBUG)}:
        count += 1
    loud = [one for one in caplog.records if one.levelno > logging.DEBUG]
    assert "apply_service.observe.request_log" not in {one.name for one in loud}
