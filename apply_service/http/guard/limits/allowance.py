"""Charges the parts of one request to its caller, each as a request of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from apply_service.http.guard.limits.rate_limits import Charge, RateLimits, rate_problem
from apply_service.http.problems import ProblemError

# How long a part that waits for its limit may not notice that the server ends.
_LONGEST_WAIT_S = 2.0


@dataclass(slots=True)
class Cost:
    """Tokens that a part has cost; the worker on the part writes them."""

    num_tokens: int = 0


class Allowance:
    """Charges the parts of one request of `name` before they are worked on.

    A part that its caller's limits have no room for waits, and those that come after it with it.
    `has_charged`: the request has parts, so it costs nothing itself.
    """

    def __init__(self, limits: RateLimits, name: str) -> None:
        self._limits = limits
        self._name = name
        self._turn = asyncio.Lock()
        self._num_unsettled = 0
        self._has_settled = asyncio.Event()
        self.has_charged = False

    @property
    def max_concurrent(self) -> int | None:
        """How many requests at the same time the caller may have, None for any number."""
        return self._limits.max_concurrent

    @asynccontextmanager
    async def charged(
        self, expected_tokens: int, *, until: float, check: Callable[[], None]
    ) -> AsyncIterator[Cost]:
        """Work that counts with `expected_tokens` while it goes on, and with its cost afterwards.

        Raises ProblemError (429) if there is no room before `until`, a time of `time.monotonic`,
        and what `check` raises, which is called while a part waits.
        """
        self.has_charged = True
        charge = await self._charge(expected_tokens, until, check)
        self._num_unsettled += 1
        cost = Cost()
        try:
            yield cost
        finally:
            self._num_unsettled -= 1
            await self._limits.settle(charge, num_tokens=cost.num_tokens)
            self._has_settled.set()

    async def _charge(
        self, expected_tokens: int, until: float, check: Callable[[], None]
    ) -> Charge:
        has_turn = await self._try_take_turn(until)
        try:
            while True:
                self._has_settled.clear()
                answer = await self._limits.try_charge(self._name, num_tokens=expected_tokens)
                if isinstance(answer, Charge):
                    return answer
                left_s = until - time.monotonic()
                is_hopeless = not self._num_unsettled and answer.wait_s >= left_s
                if not has_turn or left_s <= 0 or is_hopeless:
                    raise ProblemError(rate_problem(answer))
                await self._wait(min(answer.wait_s, left_s, _LONGEST_WAIT_S))
                check()
        finally:
            if has_turn:
                self._turn.release()

    async def _try_take_turn(self, until: float) -> bool:
        """Wait for the parts that wait already; False if that takes too long."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                return await self._turn.acquire()
        except TimeoutError:
            return False

    async def _wait(self, seconds: float) -> None:
        """Wait for time to pass, or until the cost of another part is known."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_settled.wait()


# Follows a request through its tasks; set by `allowing` alone.
_CURRENT: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def current_allowance() -> Allowance | None:
    """The allowance of the current request, None for callers without limits."""
    return _CURRENT.get()


@contextmanager
def allowing(allowance: Allowance | None) -> Iterator[None]:
    """Set the allowance that `current_allowance` returns inside the block."""
    token = _CURRENT.set(allowance)
    try:
        yield
    finally:
        _CURRENT.reset(token)
