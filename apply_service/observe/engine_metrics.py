"""Figures of the engine and its cache for Prometheus, read at the moment of a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from batching.cache.stats import TierStats
from batching.stats import EngineStats, Histogram

# By name, without the prefix of all: the field of EngineStats, and the text.
_GAUGES = {
    "num_requests_running": ("num_running", "Requests to the model that are being computed."),
    "num_requests_waiting": ("num_waiting", "Requests to the model that wait for a first step."),
    "kv_cache_blocks": ("num_blocks", "Blocks of the KV cache."),
}
_TOTALS = {
    "num_preemptions": ("preemptions", "Requests that had to give their blocks back."),
    "prompt_tokens": ("prompt_tokens", "Tokens of the prompts of finished requests."),
    "generation_tokens": ("output_tokens", "Tokens of finished answers."),
    "prefix_cache_queries": ("prompt_tokens", "Prompt tokens looked for in the prefix cache."),
    "prefix_cache_hits": ("cached_tokens", "Prompt tokens that were found there."),
    "forced_tokens": ("forced", "Output tokens that left the model no choice."),
    "spec_decode_num_drafts": ("drafts", "Drafts that were verified."),
    "spec_decode_num_draft_tokens": ("drafted", "Draft tokens that were verified."),
    "spec_decode_num_accepted_tokens": ("accepted", "Draft tokens that held."),
}
_STEPS = {
    "iteration_tokens_total": ("step_tokens", "Tokens of a forward pass."),
    "iteration_requests": ("step_requests", "Requests in a forward pass: the batch size."),
}


class EngineCollector:
    """The engine's counters and gauges, one family a figure."""

    def __init__(self, read_stats: Callable[[], EngineStats]) -> None:
        self._read_stats = read_stats

    def collect(self) -> Iterator[Metric]:
        """Called by the registry for each scrape, and once to learn the names."""
        stats = self._read_stats()
        for name, (field, text) in _GAUGES.items():
            yield GaugeMetricFamily(f"apply_{name}", text, value=getattr(stats, field))
        used = 1.0 - stats.num_free_blocks / stats.num_blocks if stats.num_blocks else 0.0
        yield GaugeMetricFamily(
            "apply_kv_cache_usage_perc", "Share of the KV cache that requests hold, 0 to 1.", used
        )
        for name, (field, text) in _TOTALS.items():
            yield CounterMetricFamily(f"apply_{name}", text, value=getattr(stats, field))
        yield _accepted_by_position(stats)
        yield _ended(stats)
        for name, (field, text) in _STEPS.items():
            yield _histogram(f"apply_{name}", text, getattr(stats, field))
        yield from tier_metrics(stats.tiers)


def _accepted_by_position(stats: EngineStats) -> Metric:
    family = CounterMetricFamily(
        "apply_spec_decode_num_accepted_tokens_per_pos",
        "Draft tokens that held, by their place in the draft, counted from 0.",
        labels=["position"],
    )
    for position, count in enumerate(stats.accepted_by_position):
        family.add_metric([str(position)], count)
    return family


def _ended(stats: EngineStats) -> Metric:
    family = CounterMetricFamily(
        "apply_request_success",
        "Requests to the model by how they ended: stop, length, abort or error.",
        labels=["finished_reason"],
    )
    ends: dict[str, int] = {
        **stats.finished_by_reason,
        "abort": stats.cancelled,
        "error": stats.failed,
    }
    for reason, count in ends.items():
        family.add_metric([reason], count)
    return family


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    """Counts by bucket, added up from the smallest as the format wants them."""
    buckets: list[tuple[str, float]] = []
    total = 0
    for limit, count in zip((*histogram.limits, None), histogram.counts, strict=True):
        total += count
        buckets.append(("+Inf" if limit is None else f"{float(limit)}", total))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=histogram.sum)


_TIER_TOTALS = {
    "lookups": ("lookups", "Requests whose prompt was searched in a tier."),
    "hits": ("hits", "Chunks of prompts that were found in a tier."),
    "hit_tokens": ("hit_tokens", "Prompt tokens that were found in a tier."),
    "read_bytes": ("read_bytes", "Bytes of the chunks that were found in a tier."),
    "read_seconds": ("read_seconds", "Seconds that requests spent searching and reading a tier."),
    "stores": ("stores", "Chunks that were written to a tier."),
    "written_bytes": ("written_bytes", "Bytes of the chunks that were written to a tier."),
}
_TIER_COUNTS_BY_REASON = {
    "misses": ("misses", "reason", "Searches that ended before the prompt's last chunk."),
    "drops": ("drops", "reason", "Chunks that were not written to a tier."),
    "decisions": ("decisions", "decision", "What searches came to: load, compute or miss."),
}
_TIER_GAUGES = {
    "num_bytes": ("memory_bytes", "Memory that a tier has taken in this process."),
    "queue_depth": ("queue_depth", "Loads and stores of a tier that are under way or wait."),
    "latency_s": ("latency_seconds", "Moving average of a round trip."),
    "bandwidth": ("bandwidth_bytes_per_second", "Moving average of reading."),
}
_BREAKER_STATES = ("closed", "half_open", "open")


def tier_metrics(tiers: Sequence[TierStats]) -> Iterator[Metric]:
    """One family a figure, one sample a tier; what has not been measured has no sample."""
    for field, (name, text) in _TIER_TOTALS.items():
        total = CounterMetricFamily(f"apply_cache_{name}", text, labels=["tier"])
        for tier in tiers:
            total.add_metric([tier.tier], getattr(tier, field))
        yield total
    for field, (name, label, text) in _TIER_COUNTS_BY_REASON.items():
        counts = CounterMetricFamily(f"apply_cache_{name}", text, labels=["tier", label])
        for tier in tiers:
            for reason, count in getattr(tier, field).items():
                counts.add_metric([tier.tier, reason], count)
        yield counts
    for field, (name, text) in _TIER_GAUGES.items():
        gauge = GaugeMetricFamily(f"apply_cache_{name}", text, labels=["tier"])
        for tier in tiers:
            value = getattr(tier, field)
            if value is not None:
                gauge.add_metric([tier.tier], value)
        yield gauge
    breaker = GaugeMetricFamily(
        "apply_cache_breaker",
        "1 for the state of a tier's circuit breaker.",
        labels=["tier", "state"],
    )
    for tier in tiers:
        for state in _BREAKER_STATES:
            breaker.add_metric([tier.tier, state], float(tier.breaker == state))
    yield breaker
