"""Figures for Prometheus, in a registry of its own. They are served, never sent anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apply_service.cache_metrics import tier_metrics
from apply_service.outcome import Outcome
from batching.stats import EngineStats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
_TOKENS_PER_PASS = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 128)

_GAUGES = {
    "num_waiting": ("waiting_requests", "Requests that wait for their first step."),
    "num_running": ("running_requests", "Requests that are being computed."),
    "num_blocks": ("kv_blocks", "Blocks of the KV cache."),
    "num_free_blocks": ("kv_free_blocks", "Blocks of the KV cache that no request holds."),
}
_TOTALS = {
    "steps": ("steps", "Forward passes."),
    "drafted": ("drafted_tokens", "Draft tokens that were verified."),
    "accepted": ("accepted_tokens", "Draft tokens that held."),
    "output_tokens": ("output_tokens", "Tokens of finished answers."),
    "prompt_tokens": ("prompt_tokens", "Tokens of the prompts of finished requests."),
    "cached_tokens": ("cached_tokens", "Prompt tokens that were found in the prefix cache."),
    "cancelled": ("cancelled_requests", "Requests that their owners withdrew."),
}


class Telemetry:
    """Counts requests and outcomes; the engine's own figures are read when they are asked for."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "apply_requests",
            "Edits by result: a status of the verdict, or the code of a problem.",
            ["result"],
            registry=self._registry,
        )
        self._findings = Counter(
            "apply_findings", "Findings of verdicts by code.", ["code"], registry=self._registry
        )
        self._seconds = Histogram(
            "apply_seconds",
            "Seconds of an edit by stage.",
            ["stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._tokens_per_pass = Histogram(
            "apply_tokens_per_target_pass",
            "Output tokens of a forward pass, by edit.",
            buckets=_TOKENS_PER_PASS,
            registry=self._registry,
        )

    def watch_engine(self, read_stats: Callable[[], EngineStats]) -> None:
        """Serve the figures of an engine as well."""
        self._registry.register(_EngineCollector(read_stats))

    def count_outcome(self, outcome: Outcome) -> None:
        """Add an edit that was answered."""
        self._requests.labels(outcome.verdict.status).inc()
        for finding in outcome.verdict.findings:
            self._findings.labels(finding.code).inc()
        stats = outcome.stats
        stages = {"queue": stats.queue_s, "prefill": stats.prefill_s, "decode": stats.decode_s}
        for stage, seconds in {**stages, "total": outcome.total_s}.items():
            self._seconds.labels(stage).observe(seconds)
        if stats.target_passes:
            self._tokens_per_pass.observe(outcome.tokens_per_target_pass)

    def count_problem(self, code: str) -> None:
        """Add an edit that ended in a problem."""
        self._requests.labels(code).inc()

    def render(self) -> bytes:
        """All figures in the text format of Prometheus."""
        return bytes(generate_latest(self._registry))


class _EngineCollector:
    """The engine's counters as they stand at the moment of a scrape."""

    def __init__(self, read_stats: Callable[[], EngineStats]) -> None:
        self._read_stats = read_stats

    def collect(self) -> Iterator[Metric]:
        """One family a figure."""
        stats = self._read_stats()
        for field, (name, text) in _GAUGES.items():
            yield GaugeMetricFamily(f"apply_{name}", text, value=getattr(stats, field))
        for field, (name, text) in _TOTALS.items():
            yield CounterMetricFamily(f"apply_{name}", text, value=getattr(stats, field))
        yield from tier_metrics(stats.tiers)
