"""Asks a Redis for counts in a way that costs requests little however it fails or dawdles."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

from apply_service.http.guard.limits.count_store import RedisCounts
from batching.cache.redis.circuit_breaker import CircuitBreaker

T = TypeVar("T")

# A request waits so long for one answer, as a share of the whole timeout.
_LIMIT_SHARE = 1 / 4
# An answer that takes so much of the timeout is slow.
_SLOW_SHARE = 1 / 20
# It is one if it is missing so much of that time later.
_MOMENT_SHARE = 1 / 5
# All requests together wait so much of the timeout for slow answers at once, ...
_BUDGET_SHARE = 1 / 5
# ... and so much of all time in the long run.
_REFILL_SHARE = 0.01

_LOGGER = logging.getLogger(__name__)


class WaitBudget:
    """How long may be waited for slow answers: a leaky bucket of seconds.

    A moment at which several wait is counted once. Whoever has waited too long in all gets no
    second budget by a quick answer in between.
    """

    def __init__(self, *, budget_s: float, refill_share: float) -> None:
        """`refill_share` of all time comes back."""
        self._budget_s = budget_s
        self._refill_share = refill_share
        self._used_s = 0.0
        self._counted_until = 0.0

    def spend(self, began_at: float, ended_at: float) -> bool:
        """Count a wait between two moments of one clock; False if there was too much of it."""
        since_last_s = max(0.0, ended_at - self._counted_until)
        wait_s = min(ended_at - began_at, since_last_s)
        self._used_s = max(0.0, self._used_s - self._refill_share * since_last_s) + wait_s
        self._counted_until = max(self._counted_until, ended_at)
        return self._used_s < self._budget_s


class _SlowMark:
    """Marks an answer as slow that is still missing a moment after it should have been there.

    The moment is one that this event loop had: what comes late because the loop itself did is
    handed over before it is up.
    """

    def __init__(self, slow_s: float) -> None:
        self.is_slow = False
        self._loop = asyncio.get_running_loop()
        self._moment_s = _MOMENT_SHARE * slow_s
        self._timer = self._loop.call_later(slow_s, self._wait_a_moment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _wait_a_moment(self) -> None:
        self._timer = self._loop.call_later(self._moment_s, self._mark)

    def _mark(self) -> None:
        self.is_slow = True


class GuardedCounts:
    """The counts of a Redis; None in the place of an answer while it fails or is slow.

    It is left alone after one failure, and after slow answers that add up. From time to time one
    trial asks it again, beside the requests.
    """

    def __init__(self, counts: RedisCounts, *, timeout_s: float) -> None:
        """A request waits a quarter of `timeout_s` for an answer at the most.

        Whether a Redis that failed is back may take all of it to find out, because no request
        waits for that.
        """
        self._counts = counts
        self._timeout_s = timeout_s
        self._slow_s = _SLOW_SHARE * timeout_s
        self._breaker = CircuitBreaker(max_failures=1)
        self._waits = WaitBudget(budget_s=_BUDGET_SHARE * timeout_s, refill_share=_REFILL_SHARE)
        self._trial: asyncio.Task[None] | None = None

    async def ask(self, question: Callable[[RedisCounts], Awaitable[T]]) -> T | None:
        """What Redis says, None if it fails or was given up a moment ago."""
        if not self._breaker.can_pass:
            if self._breaker.try_begin_trial():
                self._trial = asyncio.create_task(self._try_again())
            return None
        began_at = time.monotonic()
        try:
            with _SlowMark(self._slow_s) as mark:
                async with asyncio.timeout(_LIMIT_SHARE * self._timeout_s):
                    await self._counts.find_host()
                    answer = await question(self._counts)
        except Exception as error:  # whatever a server says, the counts of here hold
            self._waits.spend(began_at, time.monotonic())
            self._give_up(f"Redis fails: {error!r}")
            self._counts.lose_host()
            return None
        if not mark.is_slow or self._waits.spend(began_at, time.monotonic()):
            self._breaker.succeeded()
        else:
            self._give_up("Redis answers slowly")
        return answer

    async def close(self) -> None:
        """Let go of the Redis."""
        if self._trial is not None:
            self._trial.cancel()
        await self._counts.__aexit__(None, None, None)

    def _give_up(self, why: str) -> None:
        self._breaker.failed()
        _LOGGER.warning("%s; each replica counts limits by itself", why)

    async def _try_again(self) -> None:
        """Ask for a count that nobody needs; requests ask again if the answer comes soon."""
        try:
            with _SlowMark(self._slow_s) as mark:
                async with asyncio.timeout(self._timeout_s):
                    await self._counts.find_host()
                    await self._counts.add({"trial": 0}, expires_in=1)
        except Exception:  # as above; why the breaker opened has been logged
            self._breaker.trial_failed()
            self._counts.lose_host()
            return
        if mark.is_slow:
            self._breaker.trial_failed()
        else:
            self._breaker.trial_succeeded()
