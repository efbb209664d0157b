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
from batching.stats import AnswerPart, EngineStats, Histogram

# By name, without the prefix of all: the field of EngineStats, and the text.
_GAUGES = {
    "num_requests_running": ("num_running", "Requests in computation."),
    "num_requests_waiting": ("num_waiting", "Requests waiting for their first step."),
    "num_queued_tokens": ("num_queued_tokens", "Tokens of requests that are to be computed."),
    "kv_cache_blocks": ("num_blocks", "Blocks of the KV cache."),
}
_TOTALS = {
    "num_preemptions": ("preemptions", "Requests that lost their blocks to others."),
    "prompt_tokens": ("prompt_tokens", "Prompt tokens of finished requests."),
    "generation_tokens": ("output_tokens", "Answer tokens of finished requests."),
    "prefix_cache_queries": ("prompt_tokens", "Prompt tokens looked up in the prefix cache."),
    "prefix_cache_hits": ("cached_tokens", "Prompt tokens found in the prefix cache."),
    "forced_tokens": ("forced", "Output tokens without a choice for the model."),
    "spec_decode_num_drafts": ("drafts", "Verified drafts."),
    "spec_decode_num_draft_tokens": ("drafted", "Verified draft tokens."),
    "spec_decode_num_accepted_tokens": ("accepted", "Accepted draft tokens."),
}
_STEPS = {
    "iteration_tokens_total": ("step_tokens", "Tokens per forward pass."),
    "iteration_requests": ("step_requests", "Requests per forward pass (batch size)."),
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
            "apply_kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.", used
        )
        for name, (field, text) in _TOTALS.items():
            yield CounterMetricFamily(f"apply_{name}", text, value=getattr(stats, field))
        yield _accepted_by_position(stats)
        yield from _by_drafter(stats)
        yield from _drafters(stats)
        yield from _by_part(stats)
        yield _ended(stats)
        for name, (field, text) in _STEPS.items():
            yield _histogram(f"apply_{name}", text, getattr(stats, field))
        yield from tier_metrics(stats.tiers)


def _accepted_by_position(stats: EngineStats) -> Metric:
    family = CounterMetricFamily(
        "apply_spec_decode_num_accepted_tokens_per_pos",
        "Accepted draft tokens, by position in the draft, from 0.",
        labels=["position"],
    )
    for position, count in enumerate(stats.accepted_by_position):
        family.add_metric([str(position)], count)
    return family


def _by_drafter(stats: EngineStats) -> Iterator[Metric]:
    """Drafts that the model judged, without tokens that a constraint forced."""
    for field, text in (
        ("drafted", "Draft tokens of finished requests, by what they were copied from."),
        ("accepted", "Accepted draft tokens of finished requests, by what they were copied from."),
    ):
        family = CounterMetricFamily(f"apply_drafter_{field}_tokens", text, labels=["drafter"])
        for drafter, figures in stats.by_reference.items():
            family.add_metric([drafter], getattr(figures, field))
        yield family


def _drafters(stats: EngineStats) -> Iterator[Metric]:
    """Drafters beside the model, of those that are at work."""
    for field, text in (
        ("asks", "Drafts that a drafter was asked for."),
        ("seconds", "Seconds that a drafter took."),
        ("switched_off", "Requests that asked a drafter no more, because it did not pay."),
    ):
        family = CounterMetricFamily(f"apply_drafter_{field}", text, labels=["drafter"])
        for drafter, figures in stats.drafters.items():
            family.add_metric([drafter], getattr(figures, field))
        yield family


def _by_part(stats: EngineStats) -> Iterator[Metric]:
    """Drafts and times between tokens, by part of the answers."""
    labels = list(AnswerPart._fields)
    for field, text in (
        ("drafted", "Draft tokens, by kind of prompt, temperature and phase of the answer."),
        ("accepted", "Accepted draft tokens, by the same."),
    ):
        family = CounterMetricFamily(f"apply_answer_{field}_tokens", text, labels=labels)
        for answer in stats.answers:
            family.add_metric(list(answer.part), getattr(answer, field))
        yield family
    gaps = HistogramMetricFamily(
        "apply_inter_token_latency_seconds",
        "Seconds from token to token, 0 within a forward pass, by the same.",
        labels=labels,
    )
    for answer in stats.answers:
        gaps.add_metric(
            list(answer.part), _buckets(answer.gaps_us, unit=1e-6), 1e-6 * answer.gaps_us.sum
        )
    yield gaps


def _ended(stats: EngineStats) -> Metric:
    family = CounterMetricFamily(
        "apply_request_success",
        "Finished requests, by reason: stop, length, abort or error.",
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
    return HistogramMetricFamily(name, text, buckets=_buckets(histogram), sum_value=histogram.sum)


def _buckets(histogram: Histogram, *, unit: float = 1.0) -> list[tuple[str, float]]:
    """Counts by bucket, added up from the smallest as the format wants them."""
    buckets: list[tuple[str, float]] = []
    total = 0
    for limit, count in zip((*histogram.limits, None), histogram.counts, strict=True):
        total += count
        buckets.append(("+Inf" if limit is None else str(float(f"{limit * unit:.6g}")), total))
    return buckets


_TIER_TOTALS = {
    "lookups": ("lookups", "Requests that searched a tier."),
    "hits": ("hits", "Prompt chunks found in a tier."),
    "hit_tokens": ("hit_tokens", "Prompt tokens found in a tier."),
    "read_bytes": ("read_bytes", "Bytes read from a tier."),
    "read_seconds": ("read_seconds", "Seconds spent searching and reading a tier."),
    "stores": ("stores", "Chunks written to a tier."),
    "written_bytes": ("written_bytes", "Bytes written to a tier."),
}
_TIER_COUNTS_BY_REASON = {
    "misses": ("misses", "reason", "Searches that ended before the last chunk."),
    "drops": ("drops", "reason", "Chunks not written to a tier."),
    "decisions": ("decisions", "decision", "Results of searches: load, compute or miss."),
}
_TIER_GAUGES = {
    "num_bytes": ("memory_bytes", "Memory of a tier in this process."),
    "queue_depth": ("queue_depth", "Loads and stores of a tier, running or waiting."),
    "latency_s": ("latency_seconds", "Moving average of the round trip."),
    "bandwidth": ("bandwidth_bytes_per_second", "Moving average of the read rate."),
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
