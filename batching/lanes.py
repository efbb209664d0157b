"""Decides how many steps are under way at once: one, or two of half the requests each."""

from __future__ import annotations

from dataclasses import dataclass

from batching.step_costs import StepCosts, StepSize

# How much one step changes what is expected of the next.
_GAIN = 0.1
# Two steps must promise so much less time than one before they are tried.
_MARGIN = 0.03


@dataclass(slots=True)
class _Mean:
    """A decaying mean, None before anything was seen."""

    value: float | None = None

    def add(self, seen: float) -> None:
        self.value = seen if self.value is None else self.value + _GAIN * (seen - self.value)


class Lanes:
    """Weighs the device's time against the host's, by steps that were measured.

    While the device computes one half of the requests, the host commits and plans the other. Both
    halves read the weights, so that pays only where rows take the time: with c for what a step
    costs the device and h for what all requests cost the host, one lane takes c(all) + h for a
    token of each, and two take max(2 c(half), h).
    """

    def __init__(self, costs: StepCosts | None) -> None:
        """Without costs there is one lane, as there is before `observe` has been called."""
        self._costs = costs
        self._rows, self._pairs, self._host_ms = _Mean(), _Mean(), _Mean()  # of one request
        self._num_lanes = 1

    def observe(self, size: StepSize, host_ms: float) -> None:
        """Take in a step of a device, and what its plan, its launch and its commit took."""
        self._rows.add(size.num_rows / size.num_requests)
        self._pairs.add(size.num_pairs / size.num_requests)
        self._host_ms.add(host_ms / size.num_requests)

    def choose(self, num_requests: int) -> int:
        """The number of lanes for so many running requests."""
        host_ms = self._host_ms.value
        if num_requests < 2 or self._costs is None or host_ms is None:
            self._num_lanes = 1
            return 1
        one = self._step_ms(num_requests) + num_requests * host_ms
        two = max(2 * self._step_ms(num_requests / 2), num_requests * host_ms)
        is_two = two < one * (1.0 if self._num_lanes == 2 else 1.0 - _MARGIN)
        self._num_lanes = 2 if is_two else 1
        return self._num_lanes

    def _step_ms(self, num_requests: float) -> float:
        assert self._costs is not None, "checked by the caller"
        assert self._rows.value is not None, "observed together with what the host takes"
        assert self._pairs.value is not None, "as above"
        return self._costs.step_ms(
            StepSize(
                num_rows=round(num_requests * self._rows.value),
                num_plain_rows=0,
                num_pairs=round(num_requests * self._pairs.value),
                num_requests=round(num_requests),
            )
        )
