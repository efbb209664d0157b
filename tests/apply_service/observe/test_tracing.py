"""Traces of requests, kept in memory: one span a request, its stages below it, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from litestar.testing import TestClient
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from oracle_service import OracleService

from apply_service.config import SettingValueError
from apply_service.http.app import create_app
from apply_service.observe.request_record import MAX_STAGES, RequestRecord, recording, stage
from apply_service.observe.tracing import Tracing, open_tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = PARENT[:-1] + "0"
WAIT_S = 10.0
LINES = [f"value_{number} = {number}" for number in range(12)]
EDIT = {
    "original": "\n".join(LINES) + "\n",
    "update": "# ... existing code ...\nvalue_11 = 'hunter2'\n",
    "path": "values.py",
    "scope": "file",
}


class Traced:
    """A server of an oracle's edits and the spans that it makes."""

    def __init__(self, oracle: OracleService) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        app = create_app(oracle.service, max_body_bytes=100_000, tracing=Tracing(provider))
        self.client = TestClient(app)

    def take_spans(self) -> dict[str, ReadableSpan]:
        """All spans so far by name; a request's own comes last of it."""
        spans = {span.name: span for span in self._exporter.get_finished_spans()}
        self._exporter.clear()
        return spans


@pytest.fixture(scope="module")
def traced(tiny_model_dir: Path) -> Iterator[Traced]:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer([*LINES[:-1], "value_11 = 'hunter2'"])
    traced = Traced(oracle)
    with traced.client:
        while not oracle.service.is_ready:
            time.sleep(0.01)
        yield traced


def test_an_edit_has_its_stages_in_order_below_the_span_of_its_request(traced: Traced) -> None:
    result = traced.client.post("/v1/apply", json=EDIT, headers={"traceparent": PARENT}).json()
    spans = traced.take_spans()
    request = spans.pop("POST /v1/apply")
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT.split("-")[2]
    assert f"{request.context.trace_id:032x}" == PARENT.split("-")[1]
    assert request.attributes is not None
    assert request.attributes["apply.id"] == result["id"]
    assert request.attributes["apply.verdict"] == "applied"
    assert request.attributes["http.response.status_code"] == 200
    names = ("plan", "prompt", "queue", "prefill", "decode", "verdict")
    assert set(spans) == set(names)
    order = [spans[name] for name in names]
    for span in order:
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time
    starts = [span.start_time or 0 for span in order]
    assert starts == sorted(starts)
    attributes = spans["decode"].attributes
    assert attributes is not None
    assert attributes["output_tokens"] == result["usage"]["completion_tokens"]


def test_no_text_of_the_edit_is_in_a_trace(traced: Traced) -> None:
    traced.client.post("/v1/apply", json=EDIT)
    spans = traced.take_spans()
    assert spans
    assert not [span for span in spans.values() if "hunter2" in span.to_json()]


def test_a_problem_is_told_and_probes_are_not(traced: Traced) -> None:
    traced.client.post("/v1/apply", json={**EDIT, "update": ""})
    traced.client.get("/health/live")
    traced.client.get("/metrics")
    spans = traced.take_spans()
    attributes = spans["POST /v1/apply"].attributes
    assert attributes is not None
    assert attributes["apply.problem"] == "empty-update"
    assert set(spans) <= {"POST /v1/apply", "plan"}


def test_what_the_caller_does_not_sample_is_not_kept(traced: Traced) -> None:
    answer = traced.client.post("/v1/apply", json=EDIT, headers={"traceparent": UNSAMPLED})
    assert answer.status_code == 200
    assert traced.take_spans() == {}


@pytest.mark.parametrize("header", ["", "00-zz-yy-01", "é" * 300])
def test_a_damaged_traceparent_begins_a_trace(traced: Traced, header: str) -> None:
    headers = {"traceparent": header.encode("latin-1")}
    assert traced.client.post("/v1/apply", json=EDIT, headers=headers).status_code == 200
    assert traced.take_spans()["POST /v1/apply"].parent is None


@pytest.mark.parametrize(
    "environment",
    [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}],
)
def test_nothing_is_traced_unless_it_is_asked_for(environment: dict[str, str]) -> None:
    assert open_tracing(None, environment) is None


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SettingValueError, match="install the extra `otel`"):
        open_tracing("http://127.0.0.1:4318", {})


@pytest.mark.parametrize("suffix", ["", "/", "/v1/traces"])
def test_spans_reach_a_collector(
    tiny_model_dir: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        tracing = open_tracing(f"http://127.0.0.1:{collector.server_port}{suffix}", {})
        assert tracing is not None
        app = create_app(
            OracleService(tiny_model_dir).service, max_body_bytes=1000, tracing=tracing
        )
        with TestClient(app) as client:
            client.get("/v1/models")
        tracing.close()
    finally:
        collector.shutdown()
        thread.join()
        collector.server_close()
    assert [path for path, _ in received] == ["/v1/traces"]
    assert b"GET /v1/models" in received[0][1]
    assert b"apply-service" in received[0][1]


@pytest.mark.parametrize(("keeps_stages", "count"), [(False, 0), (True, MAX_STAGES)])
def test_stages_are_kept_only_where_they_are_wanted_and_not_without_end(
    keeps_stages: bool, count: int
) -> None:
    record = RequestRecord(keeps_stages=keeps_stages)
    with recording(record):
        for _ in range(MAX_STAGES + 5):
            with stage("plan"):
                pass
    assert len(record.stages) == count
    with stage("plan"):
        assert len(record.stages) == count, "outside of a request nothing is kept"
