"""Time between tokens and what became of drafts, by what is written, how it is drawn, and where."""

from __future__ import annotations

from collections.abc import Iterable

from batching.request import RequestState
from batching.stats import AnswerPart, AnswerStats, HistogramCounts

# Output tokens of the first phase; drafters have little to go by there.
START_TOKENS = 32
# Temperatures up to this one are called low.
_LOW = 0.7
_GAP_LIMITS_US = (
    *(0, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 75_000),
    *(100_000, 150_000, 250_000, 500_000, 1_000_000, 5_000_000),
)


class AnswerCounters:
    """Totals since start; written on the engine thread, read anywhere."""

    def __init__(self) -> None:
        self._parts: dict[AnswerPart, _Totals] = {}

    def observe(
        self, state: RequestState, num_tokens: int, *, drafted: int, accepted: int, now: float
    ) -> None:
        """Add tokens that a request has just got at once; the first of an answer has no gap."""
        if not num_tokens:
            return
        totals = self._parts.setdefault(_part_of(state, num_tokens), _Totals())
        totals.drafted += drafted
        totals.accepted += accepted
        if state.last_token is not None:
            totals.gaps.add(int(1e6 * (now - state.last_token)))
        if num_tokens > 1:
            totals.gaps.add(0, times=num_tokens - 1)
        state.last_token = now

    def stats(self) -> tuple[AnswerStats, ...]:
        """All parts that there were."""
        return tuple(_stats_of(self._parts.copy().items()))


class _Totals:
    def __init__(self) -> None:
        self.drafted = 0
        self.accepted = 0
        self.gaps = HistogramCounts(_GAP_LIMITS_US)


def _part_of(state: RequestState, num_tokens: int) -> AnswerPart:
    """Where the first of the last so many tokens stands."""
    request = state.request
    temperature = request.sampling.temperature
    is_start = state.num_output_tokens - num_tokens < START_TOKENS
    return AnswerPart(
        "bound_edit" if state.constrained is not None else request.prompt_kind,
        "zero" if temperature == 0.0 else "low" if temperature <= _LOW else "high",
        "start" if is_start else "rest",
    )


def _stats_of(parts: Iterable[tuple[AnswerPart, _Totals]]) -> Iterable[AnswerStats]:
    for part, totals in parts:
        yield AnswerStats(
            part=part,
            drafted=totals.drafted,
            accepted=totals.accepted,
            gaps_us=totals.gaps.snapshot(),
        )
