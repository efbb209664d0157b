"""Rate limits of a caller: requests and tokens a minute, and requests at the same time.

A minute slides: what counts is all of this clock minute and of the last one the part that is less
than a minute ago, as if it had come evenly. So two numbers a caller are enough, a limit cannot be
passed twice at the turn of a minute, and the time until the next request is let in is known.
"""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from apply_service.http.guard.limits.count_store import MemoryCounts, RedisCounts
from apply_service.http.guard.limits.guarded_counts import GuardedCounts
from apply_service.http.problems import Problem, make_problem

T = TypeVar("T")

WINDOW_S = 60
# A replica that dies leaves its requests running in Redis, for so long at the most.
LEASE_S = 120.0
# Nobody knows when a running request ends; most do soon.
_RUNNING_WAIT_S = 1.0
_CLEANUP_INTERVAL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitSettings:
    """Limits of one caller; 0 is none."""

    requests_per_minute: int
    tokens_per_minute: int
    max_concurrent: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A used-up limit."""

    what: str
    value: float
    limit: int
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What of one limit is used at a moment: of the last clock minute, of this one, `elapsed_s`
    into it. `what` names it in messages and headers."""

    what: str
    limit: int
    previous: int
    current: int
    elapsed_s: float

    @property
    def used(self) -> float:
        """The amount that counts against the limit now."""
        return self.previous * (1 - self.elapsed_s / WINDOW_S) + self.current

    @property
    def remaining(self) -> int:
        """The amount that is still allowed now."""
        return max(0, math.floor(self.limit - self.used))

    @property
    def reset_s(self) -> float:
        """Seconds until the whole limit is free again."""
        if self.current:
            return 2 * WINDOW_S - self.elapsed_s
        return WINDOW_S - self.elapsed_s if self.previous else 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until one more fits; 0 if it does now."""
        room = self.limit - self.current - 1
        if room >= 0:
            if self.previous == 0:
                return 0.0
            return max(0.0, WINDOW_S * (1 - room / self.previous) - self.elapsed_s)
        share = max(0.0, 1 - (self.limit - 1) / self.current)
        return WINDOW_S - self.elapsed_s + WINDOW_S * share

    def refusal(self) -> Refusal | None:
        """The refusal of one more, None if it is allowed."""
        if not self.limit or self.wait_s <= 0:
            return None
        return Refusal(f"{self.what} a minute", self.used, self.limit, self.wait_s)


@dataclass(frozen=True, slots=True)
class RateAdmission:
    """The answer to one request; who was admitted reports `finish`."""

    name: str
    lease_id: str
    refusal: Refusal | None
    windows: tuple[Window, ...] = ()

    def headers(self) -> dict[str, str]:
        """The state of the limits in the headers that OpenAI's clients know."""
        headers = {}
        for window in self.windows:
            headers[f"x-ratelimit-limit-{window.what}"] = str(window.limit)
            headers[f"x-ratelimit-remaining-{window.what}"] = str(window.remaining)
            headers[f"x-ratelimit-reset-{window.what}"] = f"{math.ceil(window.reset_s)}s"
        return headers


@dataclass(frozen=True, slots=True)
class Charge:
    """A part of a request as it was counted at `counted_at`, with the tokens that it may cost."""

    name: str
    num_tokens: int
    counted_at: float


def rate_problem(refusal: Refusal) -> Problem:
    """The 429 problem of a refusal."""
    return make_problem(
        429,
        code="rate-limited",
        title="The limit of this API key is used up",
        detail=f"{refusal.value:.0f} {refusal.what}, the limit is {refusal.limit}",
        value=round(refusal.value, 3),
        limit=refusal.limit,
        remedy="wait the seconds of `Retry-After`, or ask for a higher limit",
        retry_after_s=round(refusal.wait_s, 3),
    )


class RateLimits:
    """Counts here and, if there is a Redis, there; its counts hold unless it fails."""

    def __init__(
        self,
        settings: RateLimitSettings,
        *,
        shared: RedisCounts | None = None,
        timeout_s: float = 0.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since 1970, which replicas have in common.

        A request waits a quarter of `timeout_s` at the most for one answer of Redis.
        """
        self._settings = settings
        self._local = MemoryCounts()
        self._shared = None if shared is None else GuardedCounts(shared, timeout_s=timeout_s)
        self._clock = clock
        self._running: Counter[str] = Counter()
        self._num_asked = 0

    @property
    def max_concurrent(self) -> int | None:
        """How many requests of a caller may run at the same time, None for any number."""
        return self._settings.max_concurrent or None

    async def admit(self, name: str) -> RateAdmission:
        """Count one more request of a caller, unless a limit refuses it."""
        lease_id, now = uuid.uuid4().hex, self._clock()
        self._running[name] += 1
        asked, spent = await self._count(name, now, num_requests=1)
        refusal = asked.refusal() or spent.refusal()
        refusal = refusal or await self._try_hold(name, lease_id, now)
        if refusal is None:
            asked = replace(asked, current=asked.current + 1)
        admission = RateAdmission(
            name, lease_id, refusal, tuple(w for w in (asked, spent) if w.limit)
        )
        if refusal is not None:
            self._stop_running(name)
            await self._count(name, now, num_requests=-1)
            await self._release(admission)
        await self._forget_expired()
        return admission

    async def try_charge(self, name: str, *, num_tokens: int) -> Charge | Refusal:
        """Count a part of a request as one more, with its expected tokens; or why there is no room.

        A part that finds no room leaves no trace, so that it may ask as often as it likes.
        """
        now = self._clock()
        asked, spent = await self._count(name, now)
        refusal = asked.refusal() or spent.refusal()
        if refusal is not None:
            return refusal
        asked, spent = await self._count(name, now, num_requests=1, num_tokens=num_tokens)
        refusal = asked.refusal() or spent.refusal()
        if refusal is not None:
            await self._count(name, now, num_requests=-1, num_tokens=-num_tokens)
            return refusal
        await self._forget_expired()
        return Charge(name, num_tokens, now)

    async def settle(self, charge: Charge, *, num_tokens: int) -> None:
        """Count what a part has cost, from now on, in the place of what it was expected to."""
        amounts = Counter({_key("tokens", charge.name, charge.counted_at): -charge.num_tokens})
        amounts[_key("tokens", charge.name, self._clock())] += num_tokens
        await self._add(amounts)

    async def finish(self, admission: RateAdmission, *, num_tokens: int) -> None:
        """An admitted request has ended and cost so many tokens, counted from now on."""
        self._stop_running(admission.name)
        if num_tokens:
            await self._add({_key("tokens", admission.name, self._clock()): num_tokens})
        await self._release(admission)

    async def close(self) -> None:
        """Let go of the Redis."""
        if self._shared is not None:
            await self._shared.close()

    async def _count(
        self, name: str, now: float, *, num_requests: int = 0, num_tokens: int = 0
    ) -> tuple[Window, Window]:
        """Add to a caller's counts; what was used of requests and tokens before that."""
        requests, tokens = _key("requests", name, now), _key("tokens", name, now)
        before_requests = _key("requests", name, now - WINDOW_S)
        before_tokens = _key("tokens", name, now - WINDOW_S)
        counts = await self._add(
            {requests: num_requests, before_requests: 0, tokens: num_tokens, before_tokens: 0}
        )
        asked = Window(
            what="requests",
            limit=self._settings.requests_per_minute,
            previous=counts[before_requests],
            current=counts[requests] - num_requests,
            elapsed_s=now % WINDOW_S,
        )
        spent = Window(
            what="tokens",
            limit=self._settings.tokens_per_minute,
            previous=counts[before_tokens],
            current=counts[tokens] - num_tokens,
            elapsed_s=now % WINDOW_S,
        )
        return asked, spent

    async def _try_hold(self, name: str, lease_id: str, now: float) -> Refusal | None:
        """Take a place among the requests that run, or tell that there is none."""
        limit = self._settings.max_concurrent
        if not limit:
            return None
        num_running = await self._ask(
            lambda shared: shared.hold(f"running:{{{name}}}", lease_id, now=now, lease_s=LEASE_S)
        )
        if num_running is None:
            num_running = self._running[name]
        if num_running <= limit:
            return None
        return Refusal("requests at the same time", num_running, limit, _RUNNING_WAIT_S)

    async def _release(self, admission: RateAdmission) -> None:
        if self._settings.max_concurrent:
            await self._ask(
                lambda shared: shared.release(f"running:{{{admission.name}}}", admission.lease_id)
            )

    def _stop_running(self, name: str) -> None:
        self._running[name] -= 1
        if not self._running[name]:
            del self._running[name]

    async def _add(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Add here and in Redis; the totals of Redis, or those of here if it fails."""
        counts = await self._local.add(amounts, expires_in=2 * WINDOW_S)
        shared = await self._ask(lambda shared: shared.add(amounts, expires_in=2 * WINDOW_S))
        return counts if shared is None else shared

    async def _ask(self, question: Callable[[RedisCounts], Awaitable[T]]) -> T | None:
        """What Redis says; None without one, and while it is given up."""
        return None if self._shared is None else await self._shared.ask(question)

    async def _forget_expired(self) -> None:
        """Free what is left of old minutes, now and then."""
        self._num_asked += 1
        if self._num_asked % _CLEANUP_INTERVAL == 0:
            await self._local.delete_expired()


def _key(what: str, name: str, now: float) -> str:
    # In braces: a cluster keeps all counts of a caller on one server, where one step adds to them.
    return f"{what}:{{{name}}}:{int(now // WINDOW_S)}"
