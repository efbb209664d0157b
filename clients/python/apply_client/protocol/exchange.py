"""One request with its retries, as a generator that does no I/O: both clients drive it."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

from apply_client.errors import APIConnectionError, APITimeoutError

# Statuses that another try may change without anything else having changed.
RETRIED_STATUSES = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Limits for retries: `timeout_s` is for all tries and waits together.

    The n-th wait is `first_delay_s` doubled n times, at most `max_delay_s`, less a random part of
    up to a half, so that many clients do not come back at the same moment.
    """

    max_retries: int = 4
    timeout_s: float = 120.0
    first_delay_s: float = 0.5
    max_delay_s: float = 8.0

    def __post_init__(self) -> None:
        if self.max_retries < 0 or not self.timeout_s > 0:
            raise ValueError(
                f"max_retries is {self.max_retries} and timeout_s {self.timeout_s}; retries must"
                " be 0 or more, the timeout more than 0 seconds"
            )


DEFAULT_RETRY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request and report its outcome within `timeout_s` seconds."""

    timeout_s: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, or the head of one whose body is still to come; header names are lower."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """The connection failed before there was a whole answer."""

    reason: str
    is_timeout: bool = False

    def as_error(self, note: str = "") -> APIConnectionError:
        """The error to raise for the failure."""
        kind = APITimeoutError if self.is_timeout else APIConnectionError
        return kind(self.reason + note)


Effect = Send | Sleep
Outcome = Answer | ConnectionFailure | None


def exchange(
    policy: RetryPolicy,
    *,
    clock: Callable[[], float] = time.monotonic,
    draw: Callable[[], float] = random.random,
) -> Generator[Effect, Outcome, Answer]:
    """Send until there is an answer that may not be retried, or the policy says to give up.

    Raises APIConnectionError if the last try had no answer; a refusal is returned as an answer.
    `draw` gives a number from 0 to 1.
    """
    deadline = clock() + policy.timeout_s
    num_retries = 0
    while True:
        outcome = yield Send(max(deadline - clock(), 0.001))
        assert outcome is not None, "a Send has an outcome"
        if isinstance(outcome, Answer) and outcome.status not in RETRIED_STATUSES:
            return outcome
        delay_s = delay_of(policy, outcome, num_retries=num_retries, draw=draw)
        if num_retries >= policy.max_retries or clock() + delay_s >= deadline:
            return _given_up(policy, outcome, num_tries=num_retries + 1)
        num_retries += 1
        yield Sleep(delay_s)


def delay_of(
    policy: RetryPolicy,
    outcome: Answer | ConnectionFailure,
    *,
    num_retries: int,
    draw: Callable[[], float],
) -> float:
    """Seconds until the next try: never less than the service asked for."""
    # Beyond 30 doublings every delay is at its most, and powers would only overflow.
    longest = min(policy.first_delay_s * 2.0 ** min(num_retries, 30), policy.max_delay_s)
    delay_s = longest * (1.0 - draw() / 2)
    asked_s = retry_after_s(outcome.headers) if isinstance(outcome, Answer) else None
    return delay_s if asked_s is None else max(asked_s + delay_s / 4, delay_s)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or as a date; None without a usable one."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def _given_up(
    policy: RetryPolicy, outcome: Answer | ConnectionFailure, *, num_tries: int
) -> Answer:
    if isinstance(outcome, Answer):
        return outcome
    tries = "1 try" if num_tries == 1 else f"{num_tries} tries"
    raise outcome.as_error(
        f" ({tries}, at most {policy.max_retries + 1} within {policy.timeout_s:g} s); see whether"
        " the service runs, or allow more time"
    )
