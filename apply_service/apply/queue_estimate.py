"""Estimates the time that the present requests will take, from the finished ones.

A request costs its share of the seconds of each step that it was in. Its own duration says nothing
of that cost: most of it is the time of the requests that ran beside it.
"""

from __future__ import annotations

from apply_service.apply.speed_estimate import Rate
from batching.events import RequestStats
from batching.request import Priority
from batching.stats import EngineStats

# How much of what was known is kept with each new request: the last ten count most.
KEPT_SHARE = 0.9
FIRST_GUESS_S = 1.0
MAX_WAIT_S = 120.0


class QueueEstimate:
    """A moving average of the engine seconds that a request costs, and estimates from it."""

    def __init__(self) -> None:
        self._cost = Rate(KEPT_SHARE)

    def observe(self, stats: RequestStats) -> None:
        """Record the figures of a finished request."""
        self._cost.add(stats.prefill_share_s + stats.decode_share_s, 1)

    def ahead_s(self, stats: EngineStats, *, priority: Priority = Priority.BATCH) -> float:
        """Seconds of the requests that go before one of this priority.

        Running requests count as half done. Requests in batch priority let interactive ones go
        first.
        """
        num_waiting, num_running = stats.num_waiting, stats.num_running
        if priority is Priority.INTERACTIVE:
            num_waiting -= stats.num_batch_waiting
            num_running -= stats.num_batch_running
        # The two counts may be a step apart.
        return (self._cost.seconds_each or 0.0) * (max(0, num_waiting) + max(0, num_running) / 2)

    def wait_s(self, stats: EngineStats) -> float:
        """Seconds until half of the waiting requests will have had their turn.

        A caller who comes back then finds room, and the engine has not been idle meanwhile.
        """
        cost_s = self._cost.seconds_each
        if cost_s is None:
            return FIRST_GUESS_S
        return min(MAX_WAIT_S, max(1.0, stats.num_waiting / 2) * cost_s)
