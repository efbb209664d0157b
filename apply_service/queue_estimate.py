"""When a full queue will have room again, judged by how long requests took."""

from __future__ import annotations

from batching.events import RequestStats
from batching.stats import EngineStats

# Weight of the newest request in the moving average.
SMOOTHING = 0.1
FIRST_GUESS_S = 1.0
MAX_WAIT_S = 120.0


class QueueEstimate:
    """A moving average of the seconds for which a request runs, and what follows for the queue."""

    def __init__(self) -> None:
        self._running_s: float | None = None

    def observe(self, stats: RequestStats) -> None:
        """Take in the figures of a finished request."""
        seconds = stats.prefill_s + stats.decode_s
        if self._running_s is None:
            self._running_s = seconds
        else:
            self._running_s += SMOOTHING * (seconds - self._running_s)

    def wait_s(self, stats: EngineStats) -> float:
        """Seconds until half of those who wait now will have had their turn.

        Whoever comes back then finds room, and those before have not left the engine idle.
        """
        if self._running_s is None:
            return FIRST_GUESS_S
        num_before = max(1.0, stats.num_waiting / 2)
        return min(MAX_WAIT_S, num_before * self._running_s / max(1, stats.num_running))
