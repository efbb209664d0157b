"""Whether asking a drafter pays: what it brings, what it costs, and what copying brings anyway."""

from __future__ import annotations

from dataclasses import dataclass

# Assumed of a drafter that nothing is known of: tokens of a draft that hold.
PRIOR_ACCEPTED = 2.0
# How much one draft, or one call, changes what is expected.
_GAIN = 0.05
_GAIN_OF_REQUEST = 0.25
# A request that has lost so many plain steps to a drafter asks it no more.
_MOST_LOST_STEPS = 2.0


@dataclass(slots=True)
class RequestPayoff:
    """What a drafter has brought one request; `balance` is in steps of the model."""

    accepted: float
    balance: float = 0.0
    is_off: bool = False


class Payoff:
    """The account of one drafter.

    A token that holds saves a step of the model. A draft costs the request its share of the
    drafter's time, and what verifying its rows adds to a step. As long as a request has not lost
    more than `_MOST_LOST_STEPS`, it asks where the drafter promises more than copying does; then it
    is off.
    """

    def __init__(self) -> None:
        self._accepted = PRIOR_ACCEPTED
        self._call_ms: float | None = None
        self._requests: dict[str, RequestPayoff] = {}
        self.num_switched_off = 0

    def is_worth_asking(
        self, request_id: str, *, expected_copied: float, step_ms: float | None
    ) -> bool:
        """True if a draft promises to save time. `step_ms` None: time is not known, tokens count.

        expected_copied: tokens that hold of the draft that is there without asking
        step_ms: of a step of the model for this request
        """
        request = self._requests.setdefault(request_id, RequestPayoff(self._accepted))
        if request.is_off:
            return False
        gain = request.accepted - expected_copied
        if step_ms is None or self._call_ms is None:
            return gain > 0.0
        return gain * step_ms > self._call_ms

    def charge(self, num_requests: int, milliseconds: float) -> None:
        """Take in what a call for so many requests took."""
        each = milliseconds / num_requests
        self._call_ms = (
            each if self._call_ms is None else self._call_ms + _GAIN * (each - self._call_ms)
        )

    def observe(
        self,
        request_id: str,
        *,
        num_accepted: int,
        num_copied: float,
        step_ms: float | None,
        rows_ms: float = 0.0,
    ) -> None:
        """Take in how many tokens of a draft held, and how many were expected without it.

        step_ms: of a step without drafts, for this request; rows_ms: what the draft's rows added
        """
        request = self._requests.setdefault(request_id, RequestPayoff(self._accepted))
        self._accepted += _GAIN * (num_accepted - self._accepted)
        request.accepted += _GAIN_OF_REQUEST * (num_accepted - request.accepted)
        if step_ms is None or self._call_ms is None:
            return
        cost_ms = self._call_ms + rows_ms
        request.balance += max(num_accepted - num_copied, 0.0) - cost_ms / step_ms
        request.balance = min(request.balance, _MOST_LOST_STEPS)
        if request.balance < -_MOST_LOST_STEPS and not request.is_off:
            request.is_off = True
            self.num_switched_off += 1

    def forget(self, request_id: str) -> None:
        """A request has ended."""
        self._requests.pop(request_id, None)
