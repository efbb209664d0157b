"""Counters of the engine as a whole, for metrics and health."""

from __future__ import annotations

from dataclasses import dataclass

from batching.cache_stats import TierStats
from batching.events import Cancelled, Failed, Finished
from batching.step_plan import StepPlan, StepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """Gauges (`num_*`) and totals since start; `tiers` are those of the prefix cache below the
    device."""

    num_waiting: int
    num_running: int
    num_blocks: int
    num_free_blocks: int
    preemptions: int
    steps: int
    drafted: int
    accepted: int
    forced: int
    output_tokens: int
    prompt_tokens: int
    cached_tokens: int
    finished: int
    failed: int
    cancelled: int
    tiers: tuple[TierStats, ...] = ()


class EngineCounters:
    """Totals since start; written on the engine thread, read anywhere."""

    def __init__(self) -> None:
        self._steps = 0
        self._drafted = 0
        self._accepted = 0
        self._forced = 0
        self._output_tokens = 0
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._finished = 0
        self._failed = 0
        self._cancelled = 0

    def count_step(self, plan: StepPlan, result: StepResult) -> None:
        """Add one executed step."""
        self._steps += 1
        for scheduled, verified in zip(plan.scheduled, result.verified, strict=True):
            self._drafted += len(scheduled.draft_token_ids)
            self._accepted += verified.num_accepted

    def count_end(self, event: Finished | Failed | Cancelled) -> None:
        """Add the last event of a request."""
        if isinstance(event, Finished):
            self._finished += 1
            self._output_tokens += event.stats.num_output_tokens
            self._prompt_tokens += event.stats.num_prompt_tokens
            self._cached_tokens += event.stats.num_cached_tokens
            self._forced += event.stats.forced
        elif isinstance(event, Failed):
            self._failed += 1
        else:
            self._cancelled += 1

    def snapshot(
        self,
        *,
        num_waiting: int,
        num_running: int,
        num_blocks: int,
        num_free_blocks: int,
        preemptions: int,
        tiers: tuple[TierStats, ...],
    ) -> EngineStats:
        """The totals beside the gauges of the moment."""
        return EngineStats(
            num_waiting=num_waiting,
            num_running=num_running,
            num_blocks=num_blocks,
            num_free_blocks=num_free_blocks,
            preemptions=preemptions,
            steps=self._steps,
            drafted=self._drafted,
            accepted=self._accepted,
            forced=self._forced,
            output_tokens=self._output_tokens,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            finished=self._finished,
            failed=self._failed,
            cancelled=self._cancelled,
            tiers=tiers,
        )
