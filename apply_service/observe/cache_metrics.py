"""Figures of the prefix cache's tiers for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from batching.cache.stats import TierStats

_TOTALS = {
    "lookups": ("lookups", "Requests that searched a tier."),
    "hits": ("hits", "Prompt chunks found in a tier."),
    "hit_tokens": ("hit_tokens", "Prompt tokens found in a tier."),
    "read_bytes": ("read_bytes", "Bytes read from a tier."),
    "read_seconds": ("read_seconds", "Seconds spent searching and reading a tier."),
    "stores": ("stores", "Chunks written to a tier."),
    "written_bytes": ("written_bytes", "Bytes written to a tier."),
}
_BY_REASON = {
    "misses": ("misses", "reason", "Searches that ended before the last chunk."),
    "drops": ("drops", "reason", "Chunks not written to a tier."),
    "decisions": ("decisions", "decision", "Results of searches: load, compute or miss."),
}
_GAUGES = {
    "num_bytes": ("memory_bytes", "Memory of a tier in this process."),
    "queue_depth": ("queue_depth", "Loads and stores of a tier, running or waiting."),
    "latency_s": ("latency_seconds", "Moving average of the round trip."),
    "bandwidth": ("bandwidth_bytes_per_second", "Moving average of the read rate."),
}
_BREAKER_STATES = ("closed", "half_open", "open")


def tier_metrics(tiers: Sequence[TierStats]) -> Iterator[Metric]:
    """One family a figure, one sample a tier; what has not been measured has no sample."""
    for field, (name, text) in _TOTALS.items():
        total = CounterMetricFamily(f"apply_cache_{name}", text, labels=["tier"])
        for tier in tiers:
            total.add_metric([tier.tier], getattr(tier, field))
        yield total
    for field, (name, label, text) in _BY_REASON.items():
        counts = CounterMetricFamily(f"apply_cache_{name}", text, labels=["tier", label])
        for tier in tiers:
            for reason, count in getattr(tier, field).items():
                counts.add_metric([tier.tier, reason], count)
        yield counts
    for field, (name, text) in _GAUGES.items():
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
