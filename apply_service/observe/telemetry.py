"""Metrics for Prometheus in a registry of their own; served on request, never sent.

What vLLM has too has its name here, with `apply_` where it says `vllm:`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily

from apply_service.apply.outcome import Outcome
from apply_service.models.slot import MODEL_STATES, ModelState
from apply_service.observe.engine_metrics import EngineCollector
from apply_service.observe.log_stream import LogStream
from apply_service.observe.request_record import current_record
from batching.events import RequestStats
from batching.stats import EngineStats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
_TOKEN_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_TOKENS = (16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
_TOKENS_PER_PASS = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 128)
# Problems that are verdicts.
_VERDICTS = ("rejected", "needs-review")
_CONFIDENCES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)

_REQUEST_HISTOGRAMS = {
    "time_to_first_token_seconds": (_SECONDS, "Seconds until the first token of an answer."),
    "request_queue_time_seconds": (_SECONDS, "Seconds that a request waited."),
    "request_prefill_time_seconds": (_SECONDS, "Seconds that computing a prompt took."),
    "request_decode_time_seconds": (_SECONDS, "Seconds that writing an answer took."),
    "request_time_per_output_token_seconds": (
        _TOKEN_SECONDS,
        "Seconds per answer token, without the first.",
    ),
    "request_prompt_tokens": (_TOKENS, "Tokens of a prompt."),
    "request_generation_tokens": (_TOKENS, "Tokens of an answer."),
}


class Telemetry:
    """Counts requests and edits; the engine's own figures are read when they are asked for."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._edits = self._counter(
            "requests", "Edits, by verdict status or problem code.", "result"
        )
        self._findings = self._counter("findings", "Findings of verdicts, by code.", "code")
        self._sources = self._counter("answers", "Edits, by source of the text.", "source")
        self._judge_answers = self._counter(
            "judge_answers", "Doubts that the judge was asked about, by what came of it.", "result"
        )
        self._judge_seconds = self._histogram(
            "judge_seconds", _SECONDS, "Seconds that an edit waited for the judge."
        )
        self._writer_answers = self._counter(
            "writer_answers", "Edits that the writer was asked for, by what came of it.", "result"
        )
        self._writer_seconds = self._histogram(
            "writer_seconds", _SECONDS, "Seconds that an edit waited for the writer."
        )
        self._http_requests = self._counter(
            "http_requests", "HTTP requests.", "method", "route", "status"
        )
        self._http_seconds = self._histogram(
            "http_request_duration_seconds", _SECONDS, "Seconds of an HTTP request.", "route"
        )
        self._edit_seconds = self._histogram(
            "e2e_request_latency_seconds", _SECONDS, "Seconds from receiving an edit to its result."
        )
        self._confidence = self._histogram(
            "confidence", _CONFIDENCES, "The model's confidence in an edit.", "verdict"
        )
        self._tokens_per_pass = self._histogram(
            "tokens_per_target_pass", _TOKENS_PER_PASS, "Output tokens per forward pass of an edit."
        )
        self._of_requests = {
            name: self._histogram(name, buckets, text)
            for name, (buckets, text) in _REQUEST_HISTOGRAMS.items()
        }
        self._model = Gauge(
            "apply_model_info",
            "1 for the served model.",
            ["model_name", "profile", "fingerprint"],
            registry=self._registry,
        )
        self._model_state = Gauge(
            "apply_model_state",
            "1 for the model's state: loading, ready or failed.",
            ["state"],
            registry=self._registry,
        )

        self._log: LogStream | None = None
        self._registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """What is counted elsewhere; for the registry."""
        yield CounterMetricFamily(
            "apply_log_lines_dropped",
            "Lines of the server's log that nobody read in time.",
            value=0 if self._log is None else self._log.num_dropped,
        )

    def watch_log(self, log: LogStream) -> None:
        """Serve how many lines of the log were dropped."""
        self._log = log

    def watch_model(self, read_state: Callable[[], ModelState]) -> None:
        """Serve the model's state: 1 for the present one, 0 for the others."""
        for state in MODEL_STATES:
            self._model_state.labels(state).set_function(partial(_is_in, state, read_state))

    def watch_engine(
        self, read_stats: Callable[[], EngineStats], *, name: str, profile: str, fingerprint: str
    ) -> None:
        """Serve the figures of a model's engine as well."""
        self._registry.register(EngineCollector(read_stats))
        self._model.labels(name, profile, fingerprint).set(1)

    def observe_outcome(self, outcome: Outcome) -> None:
        """Add an edit that has its verdict; every edit that is run comes here once."""
        record = current_record()
        if record is not None:
            record.add_outcome(outcome)
        status = outcome.verdict.status
        self._edits.labels(status).inc()
        self._sources.labels(outcome.source).inc()
        for finding in outcome.verdict.findings:
            self._findings.labels(finding.code).inc()
        self._edit_seconds.observe(outcome.total_s)
        if outcome.confidence is not None:
            self._confidence.labels(status).observe(outcome.confidence)
        if outcome.stats.target_passes:
            self._tokens_per_pass.observe(outcome.tokens_per_target_pass)

    def observe_request(self, stats: RequestStats) -> None:
        """Add a request to the model that ended; an edit makes one for each region it tries."""
        record = current_record()
        if record is not None:
            record.add_generation(stats)
        values = {
            "time_to_first_token_seconds": stats.queue_s + stats.prefill_s,
            "request_queue_time_seconds": stats.queue_s,
            "request_prefill_time_seconds": stats.prefill_s,
            "request_decode_time_seconds": stats.decode_s,
            "request_prompt_tokens": stats.num_prompt_tokens,
            "request_generation_tokens": stats.num_output_tokens,
        }
        if stats.num_output_tokens > 1:
            seconds = stats.decode_s / (stats.num_output_tokens - 1)
            values["request_time_per_output_token_seconds"] = seconds
        for name, value in values.items():
            self._of_requests[name].observe(value)

    def observe_chat(self, stats: RequestStats) -> None:
        """Add a chat, which is a request to the model without an edit around it."""
        record = current_record()
        if record is not None:
            record.add_tokens(stats)
        self.observe_request(stats)

    def count_judge(self, result: str, seconds: float | None) -> None:
        """Add a doubt; without seconds the judge was not asked."""
        self._judge_answers.labels(result).inc()
        if seconds is not None:
            self._judge_seconds.observe(seconds)

    def count_writer(self, result: str, seconds: float | None) -> None:
        """Add an edit for the writer; without seconds it was not asked."""
        self._writer_answers.labels(result).inc()
        if seconds is not None:
            self._writer_seconds.observe(seconds)

    def count_problem(self, code: str) -> None:
        """Add an edit that ended in a problem; a verdict was counted when it was made."""
        record = current_record()
        if record is not None:
            record.problems[code] += 1
        if code not in _VERDICTS:
            self._edits.labels(code).inc()

    def count_http(self, method: str, route: str, status: int | None, *, seconds: float) -> None:
        """Add an HTTP request; without a status the client had gone before there was an answer."""
        self._http_requests.labels(method, route, str(status or "none")).inc()
        self._http_seconds.labels(route).observe(seconds)

    def render(self) -> bytes:
        """All figures in the text format of Prometheus."""
        return bytes(generate_latest(self._registry))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"apply_{name}", text, labels, registry=self._registry)

    def _histogram(
        self, name: str, buckets: tuple[float, ...], text: str, *labels: str
    ) -> Histogram:
        return Histogram(f"apply_{name}", text, labels, buckets=buckets, registry=self._registry)


def _is_in(state: ModelState, read_state: Callable[[], ModelState]) -> float:
    return float(read_state() == state)
