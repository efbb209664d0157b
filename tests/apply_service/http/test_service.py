"""Edits that need no model are done from the start; the others wait for the model, or learn why."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient
from oracle_service import MODEL_NAME, OracleService
from prometheus_client.parser import text_string_to_metric_families

from apply_service.http.app import create_app
from apply_service.models.manifest import ModelNotFoundError
from apply_service.prompts.errors import TokenizerError
from apply_service.service import ApplyService, LoadedModel
from batching.errors import ModelLoadError

WAIT_S = 30.0
ORIGINAL = "def shout(path):\n    base = clean(path)\n    return base.upper()\n"
PROVEN = {
    "original": ORIGINAL,
    "update": "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n",
    "path": "shout.py",
}
# The name says where the function goes, but no line behind it does.
OPEN = {
    "original": ORIGINAL,
    "update": "# ... existing code ...\ndef shout(path):\n    return clean(path).upper()\n",
    "path": "shout.py",
    "constraint": "merge",
}
OPEN_MERGED = "def shout(path):\n    return clean(path).upper()\n"


class LateModel:
    """An oracle that is loaded once `may_load` is set, or then fails with `error`."""

    def __init__(self, oracle: OracleService, error: Exception | None = None) -> None:
        self.may_load = threading.Event()
        self._oracle = oracle
        self._error = error

    def load(self) -> LoadedModel:
        """What the service is given as its loader."""
        self.may_load.wait(WAIT_S)
        if self._error is not None:
            raise self._error
        return self._oracle.load()


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(OPEN_MERGED.splitlines())
    oracle.runner.sureness = 0.999
    return oracle


@contextmanager
def starting(
    oracle: OracleService, error: Exception | None = None, **settings: Any
) -> Iterator[tuple[LateModel, ApplyService, TestClient[Any]]]:
    """A service whose model waits for its test, at the default setting of `use_model`."""
    late = LateModel(oracle, error)
    service = ApplyService(
        late.load,
        model_name=MODEL_NAME,
        limits=oracle.limits,
        default_deadline_s=WAIT_S,
        drain_s=5.0,
        **settings,
    )
    with TestClient(create_app(service, max_body_bytes=100_000)) as client:
        try:
            yield late, service, client
        finally:
            late.may_load.set()


class Asked:
    """A request under way in a thread."""

    def __init__(self, client: TestClient[Any], body: dict[str, Any]) -> None:
        self._answers: list[httpx.Response] = []
        self._thread = threading.Thread(
            target=lambda: self._answers.append(client.post("/v1/apply", json=body))
        )
        self._thread.start()

    @property
    def is_waiting(self) -> bool:
        return self._thread.is_alive()

    def answer(self) -> httpx.Response:
        self._thread.join(WAIT_S)
        return self._answers[0]


def model_states(client: TestClient[Any]) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    family = next(family for family in families if family.name == "apply_model_state")
    return {sample.labels["state"]: sample.value for sample in family.samples}


def test_edits_that_need_no_model_do_not_wait_for_it(oracle: OracleService) -> None:
    with starting(oracle) as (late, _, client):
        assert client.get("/health/ready").json() == {"status": "ready", "model": "loading"}
        strict = client.get("/health/ready?model=ready")
        assert (strict.status_code, strict.json()["code"]) == (503, "not-ready")
        assert model_states(client) == {"loading": 1, "ready": 0, "failed": 0}

        waiting = Asked(client, OPEN)
        result = client.post("/v1/apply", json=PROVEN).json()
        assert (result["status"], result["source"]) == ("applied", "merge")
        assert result["model"] == MODEL_NAME
        assert result["system_fingerprint"].endswith("_model-none_adapter-none")
        fields = {"initial_code": ORIGINAL, "edit_snippet": PROVEN["update"]}
        compat = client.post("/v1/code/apply", json=fields).json()
        assert compat["merged_code"] == result["merged"]
        lines = client.post("/v1/batches", json={**PROVEN, "id": "a"}).json()
        assert lines["result"]["merged"] == result["merged"]
        assert waiting.is_waiting

        late.may_load.set()
        answer = waiting.answer().json()
        assert (answer["status"], answer["source"]) == ("applied", "model")
        assert answer["merged"] == OPEN_MERGED
        assert "oracle-finge" in answer["system_fingerprint"]
        assert client.get("/health/ready?model=ready").json()["model"] == "ready"
        assert model_states(client) == {"loading": 0, "ready": 1, "failed": 0}


def test_an_edit_that_needs_the_model_waits_no_longer_than_its_deadline(
    oracle: OracleService,
) -> None:
    with starting(oracle) as (_, _, client):
        # The plan is kept, so that the deadline ends the wait and not the work on the text.
        assert client.post("/v1/apply", json={**OPEN, "use_model": "never"}).status_code == 200
        response = client.post("/v1/apply", json={**OPEN, "deadline_s": 0.5})
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        problem = response.json()
        assert problem["code"] == "not-ready"
        assert "needs the model" in problem["detail"]
        assert 'use_model "never"' in problem["detail"]


def test_no_more_edits_wait_for_the_model_than_may(oracle: OracleService) -> None:
    with starting(oracle, max_waiting=0) as (_, _, client):
        response = client.post("/v1/apply", json=OPEN)
        assert (response.status_code, response.json()["code"]) == (429, "queue-full")
        assert client.post("/v1/apply", json=PROVEN).status_code == 200


@pytest.mark.parametrize("error", [ModelLoadError("no memory"), ZeroDivisionError("a bug")])
def test_a_model_that_does_not_load_fails_only_the_edits_that_need_it(
    oracle: OracleService, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with starting(oracle, error) as (late, service, client):
        told = threading.Event()
        service.on_model_missing(told.set)
        waiting = Asked(client, OPEN)
        late.may_load.set()
        for response in (waiting.answer(), client.post("/v1/apply", json=OPEN)):
            assert (response.status_code, response.json()["code"]) == (503, "model-failed")
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["code"]) == (503, "model-failed")
        assert client.get("/health/live").status_code == 200
        assert client.get("/v1/models").json()["data"] == []
        assert model_states(client) == {"loading": 0, "ready": 0, "failed": 1}
        assert client.post("/v1/apply", json=PROVEN).json()["status"] == "applied"
        never = client.post("/v1/apply", json={**OPEN, "use_model": "never"}).json()
        assert never["status"] == "needs_review"
        assert not told.is_set()
        assert f"the model cannot be served: {error}" in caplog.text


@pytest.mark.parametrize("error", [ModelNotFoundError("no such model"), TokenizerError("no table")])
def test_a_model_that_is_not_there_is_told(oracle: OracleService, error: Exception) -> None:
    with starting(oracle, error) as (late, service, _):
        told = threading.Event()
        service.on_model_missing(told.set)
        late.may_load.set()
        assert told.wait(WAIT_S)
        assert service.is_model_missing


def test_who_waits_for_the_model_is_told_of_the_end(oracle: OracleService) -> None:
    with starting(oracle) as (_, service, client):
        waiting = Asked(client, OPEN)
        client.blocking_portal.call(service.fail_running)
        response = waiting.answer()
        assert (response.status_code, response.json()["code"]) == (503, "shutting_down")


def test_an_unknown_name_is_refused_before_the_model_is_loaded(oracle: OracleService) -> None:
    with starting(oracle) as (_, _, client):
        response = client.post("/v1/apply", json={**PROVEN, "model": "another"})
        assert (response.status_code, response.json()["code"]) == (404, "unknown-model")
