"""Every variant of tags and fields that clients are known to send gets the same merge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from oracle_service import OracleService
from recorded_requests import RecordedRequest, recorded_requests, text_of
from server_thread import serving
from tagged_edit import MERGED, ORIGINAL, UNSURE_ORIGINAL, UNSURE_UPDATE, UPDATE

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.contenders.endpoint import Endpoint
from apply_service.evaluate.contenders.remote import RemoteContender
from apply_service.evaluate.contenders.wire_formats import FORMATS, Api

REQUESTS = recorded_requests()


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[httpx.Client]:
    """A server that merges without a model: what is tested is how it is asked."""
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.mark.parametrize("request_", REQUESTS, ids=[request.name for request in REQUESTS])
def test_a_recorded_request_gets_its_merge(client: httpx.Client, request_: RecordedRequest) -> None:
    response = client.post(request_.path, json=request_.body)
    assert response.status_code == 200, response.text
    assert text_of(request_, response.text) == request_.expected
    assert response.headers["X-Apply-Status"] == "applied"


def test_the_table_has_every_name_once() -> None:
    names = [(request.path, request.name) for request in REQUESTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("api", FORMATS)
def test_the_bench_that_asks_other_services_can_ask_this_one(
    client: httpx.Client, api: Api
) -> None:
    case = Case(id="one", path="a.py", original=ORIGINAL, update=UPDATE, expected=MERGED)
    endpoint = Endpoint(str(client.base_url), api_key="any", timeout_s=30)
    answer = RemoteContender(endpoint, api).answer(case)
    assert (answer.status, answer.text) == ("applied", MERGED)
    doubtful = Case(
        id="two", path="b.py", original=UNSURE_ORIGINAL, update=UNSURE_UPDATE, expected=""
    )
    status = RemoteContender(endpoint, api).answer(doubtful).status
    assert status == ("needs_review" if api == "apply" else "failed")
