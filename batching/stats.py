"""Counters of the engine as a whole, for metrics and health."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, NamedTuple

from batching.cache.stats import TierStats
from batching.events import Cancelled, Failed, Finished, FinishReason, ReferenceStats
from batching.step_plan import StepPlan, StepResult

_TOKEN_LIMITS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_REQUEST_LIMITS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often a value was at most each limit but over the one before; last, over all limits."""

    limits: tuple[int, ...]
    counts: tuple[int, ...]
    sum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterStats:
    """How often a drafter was asked for a request, and its seconds.

    `switched_off` counts requests that asked it no more, because it did not pay.
    """

    asks: int
    seconds: float
    switched_off: int


class AnswerPart(NamedTuple):
    """What is written, bound to valid merges or freely; how it is drawn; where in the answer."""

    prompt_kind: Literal["bound_edit", "edit", "chat"]
    temperature: Literal["zero", "low", "high"]
    phase: Literal["start", "rest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStats:
    """Draft tokens that the model judged, and microseconds from token to token, in a part.

    Tokens of one forward pass come together: all but the first of them have no gap.
    """

    part: AnswerPart
    drafted: int
    accepted: int
    gaps_us: Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """Gauges (`num_*`) and totals since start; `tiers` are those of the prefix cache below the
    device. `accepted_by_position` counts accepted draft tokens by their place in the draft,
    `by_reference` those of finished requests by what they were copied from. Of the seconds of steps
    `schedule_s` went to their plans, drafts included, `execute_s` to the model.
    `num_batch_waiting` and `num_batch_running` are those in batch priority among them all.
    `num_queued_tokens` are to be computed for the requests that are there."""

    num_waiting: int
    num_running: int
    num_blocks: int
    num_free_blocks: int
    preemptions: int
    steps: int
    drafts: int
    drafted: int
    accepted: int
    accepted_by_position: tuple[int, ...]
    forced: int
    output_tokens: int
    prompt_tokens: int
    cached_tokens: int
    finished: int
    failed: int
    cancelled: int
    finished_by_reason: Mapping[str, int]
    step_tokens: Histogram
    step_requests: Histogram
    schedule_s: float = 0.0
    execute_s: float = 0.0
    tiers: tuple[TierStats, ...] = ()
    num_batch_waiting: int = 0
    num_batch_running: int = 0
    num_queued_tokens: int = 0
    by_reference: Mapping[str, ReferenceStats] = field(default_factory=dict)
    drafters: Mapping[str, DrafterStats] = field(default_factory=dict)
    answers: tuple[AnswerStats, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGauges:
    """Gauges of the moment, and counts kept elsewhere."""

    num_waiting: int
    num_running: int
    num_blocks: int
    num_free_blocks: int
    preemptions: int
    tiers: tuple[TierStats, ...]
    num_batch_waiting: int = 0
    num_batch_running: int = 0
    num_queued_tokens: int = 0
    drafters: Mapping[str, DrafterStats] = field(default_factory=dict)
    answers: tuple[AnswerStats, ...] = ()


class EngineCounters:
    """Totals since start; written on the engine thread, read anywhere."""

    def __init__(self) -> None:
        self._drafts = 0
        self._drafted = 0
        self._accepted_lengths: Counter[int] = Counter()
        self._drafted_from: Counter[str] = Counter()
        self._accepted_from: Counter[str] = Counter()
        self._forced = 0
        self._output_tokens = 0
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._finished: Counter[FinishReason] = Counter()
        self._failed = 0
        self._cancelled = 0
        self._step_tokens = HistogramCounts(_TOKEN_LIMITS)
        self._step_requests = HistogramCounts(_REQUEST_LIMITS)
        self._schedule_s = 0.0
        self._execute_s = 0.0

    def count_step(
        self, plan: StepPlan, result: StepResult, *, schedule_s: float, execute_s: float
    ) -> None:
        """Add one executed step, and the seconds that its plan and its computation took."""
        self._schedule_s += schedule_s
        self._execute_s += execute_s
        self._step_tokens.add(plan.num_tokens)
        self._step_requests.add(len(plan.scheduled))
        for scheduled, verified in zip(plan.scheduled, result.verified, strict=True):
            num_drafted = 0 if scheduled.draft is None else scheduled.draft.num_nodes
            if num_drafted:
                self._drafts += 1
                self._drafted += num_drafted
                self._accepted_lengths[verified.num_accepted] += 1

    def count_end(self, event: Finished | Failed | Cancelled) -> None:
        """Add the last event of a request."""
        if isinstance(event, Finished):
            self._finished[event.reason] += 1
            self._output_tokens += event.stats.num_output_tokens
            self._prompt_tokens += event.stats.num_prompt_tokens
            self._cached_tokens += event.stats.num_cached_tokens
            self._forced += event.stats.forced
            for name, figures in event.stats.by_reference.items():
                self._accepted_from[name] += figures.accepted
                self._drafted_from[name] += figures.drafted
        elif isinstance(event, Failed):
            self._failed += 1
        else:
            self._cancelled += 1

    def snapshot(self, gauges: EngineGauges) -> EngineStats:
        """The totals beside the gauges of the moment."""
        accepted_by_position = _accepted_by_position(dict(self._accepted_lengths))
        step_tokens = self._step_tokens.snapshot()
        return EngineStats(
            num_waiting=gauges.num_waiting,
            num_running=gauges.num_running,
            num_blocks=gauges.num_blocks,
            num_free_blocks=gauges.num_free_blocks,
            preemptions=gauges.preemptions,
            steps=sum(step_tokens.counts),
            drafts=self._drafts,
            drafted=self._drafted,
            accepted=sum(accepted_by_position),
            accepted_by_position=accepted_by_position,
            forced=self._forced,
            output_tokens=self._output_tokens,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            finished=self._finished.total(),
            failed=self._failed,
            cancelled=self._cancelled,
            finished_by_reason={reason: self._finished[reason] for reason in ("stop", "length")},
            step_tokens=step_tokens,
            step_requests=self._step_requests.snapshot(),
            schedule_s=self._schedule_s,
            execute_s=self._execute_s,
            tiers=gauges.tiers,
            drafters=gauges.drafters,
            answers=gauges.answers,
            num_batch_waiting=gauges.num_batch_waiting,
            num_batch_running=gauges.num_batch_running,
            num_queued_tokens=gauges.num_queued_tokens,
            by_reference={
                name: ReferenceStats(count, self._accepted_from[name])
                for name, count in dict(self._drafted_from).items()
            },
        )


@dataclass(slots=True)
class HistogramCounts:
    """A histogram that grows."""

    limits: tuple[int, ...]
    counts: list[int] = field(init=False)
    sum: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.limits) + 1)

    def add(self, value: int, *, times: int = 1) -> None:
        """Count a value."""
        self.counts[bisect_left(self.limits, value)] += times
        self.sum += times * value

    def snapshot(self) -> Histogram:
        """The counts so far."""
        return Histogram(self.limits, tuple(self.counts), self.sum)


def _accepted_by_position(counts_by_length: Mapping[int, int]) -> tuple[int, ...]:
    """A draft of which n tokens held has one accepted token at each of the first n places."""
    longest = max(counts_by_length, default=0)
    ends = [counts_by_length.get(length, 0) for length in range(longest, 0, -1)]
    return tuple(accumulate(ends))[::-1]
