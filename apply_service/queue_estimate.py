"""How long the requests take that are there already, judged by those that have ended."""

from __future__ import annotations

from batching.events import RequestStats
from batching.stats import EngineStats

# Weight of the newest request in the moving average.
SMOOTHING = 0.1
FIRST_GUESS_S = 1.0
MAX_WAIT_S = 120.0


class QueueEstimate:
    """A moving average of the seconds of the engine that a request costs, and what follows."""

    def __init__(self) -> None:
        self._cost_s: float | None = None

    def observe(self, stats: RequestStats, *, num_together: int = 1) -> None:
        """Take in the figures of a finished request that shared the engine with so many others."""
        seconds = (stats.prefill_s + stats.decode_s) / num_together
        if self._cost_s is None:
            self._cost_s = seconds
        else:
            self._cost_s += SMOOTHING * (seconds - self._cost_s)

    def ahead_s(self, stats: EngineStats) -> float:
        """Seconds that all requests will take that are there now, half of what runs being done."""
        return (self._cost_s or 0.0) * (stats.num_waiting + stats.num_running / 2)

    def wait_s(self, stats: EngineStats) -> float:
        """Seconds until half of those who wait now will have had their turn.

        Whoever comes back then finds room, and those before have not left the engine idle.
        """
        if self._cost_s is None:
            return FIRST_GUESS_S
        return min(MAX_WAIT_S, max(1.0, stats.num_waiting / 2) * self._cost_s)
