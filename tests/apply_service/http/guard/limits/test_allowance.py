"""What the parts of a request cost: charged before the work, settled after it, in their order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from apply_service.http.guard.limits.allowance import Allowance
from apply_service.http.guard.limits.rate_limits import RateLimits, RateLimitSettings
from apply_service.http.problems import ProblemError

NOW = 1_800_000_000.0
LATER_S = 30.0


def allowance_of(*, requests: int = 0, tokens: int = 0) -> Allowance:
    """Of a caller for whom no time passes."""
    settings = RateLimitSettings(
        requests_per_minute=requests, tokens_per_minute=tokens, max_concurrent=0
    )
    return Allowance(RateLimits(settings, clock=lambda: NOW), "one")


class Part:
    """Work that ends when it is told what it cost."""

    def __init__(
        self,
        allowance: Allowance,
        expected_tokens: int = 0,
        *,
        waits_s: float = LATER_S,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._allowance = allowance
        self._expected_tokens = expected_tokens
        self._until = time.monotonic() + waits_s
        self._check = check
        self.has_begun = False
        self.cost: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        charged = self._allowance.charged(
            self._expected_tokens, until=self._until, check=self._check
        )
        async with charged as cost:
            self.has_begun = True
            cost.num_tokens = await self.cost

    async def end(self, num_tokens: int = 0) -> None:
        self.cost.set_result(num_tokens)
        await self.task


async def settle() -> None:
    """Everything that can go on without an event has gone on."""
    for _ in range(100):
        await asyncio.sleep(0)


async def refusal(part: Part) -> Any:
    with pytest.raises(ProblemError) as caught:
        await part.task
    return caught.value.problem


async def expected_tokens_hold_others_back() -> None:
    allowance = allowance_of(tokens=100)
    first, second, third = (Part(allowance, 60) for _ in range(3))
    await settle()
    assert [part.has_begun for part in (first, second, third)] == [True, True, False]
    await first.end(5)  # 65 are spoken for, so that one more fits
    await settle()
    assert third.has_begun
    await second.end(200)
    await third.end(0)
    problem = await refusal(Part(allowance, 1))
    assert (problem.status, problem.code, problem.value) == (429, "rate-limited", 205)


async def each_part_is_a_request() -> None:
    allowance = allowance_of(requests=2)
    for _ in range(2):
        await Part(allowance).end()
    problem = await refusal(Part(allowance))
    assert (problem.value, problem.limit) == (2, 2)
    assert problem.retry_after_s > LATER_S, "there was no sense in waiting"


async def who_cannot_wait_is_not_held_up_by_who_can() -> None:
    allowance = allowance_of(tokens=100)
    first, patient = Part(allowance, 100), Part(allowance, 1)
    await settle()
    assert (await refusal(Part(allowance, 1, waits_s=0.0))).code == "rate-limited"
    assert not patient.has_begun
    await first.end(0)
    await patient.end(0)


async def a_part_that_fails_is_settled() -> None:
    allowance = allowance_of(tokens=100)
    first, second = Part(allowance, 100), Part(allowance, 100)
    await settle()
    first.cost.set_exception(ValueError("failed"))
    with pytest.raises(ValueError, match="failed"):
        await first.task
    await second.end(0)


async def a_server_that_ends_is_noticed() -> None:
    def check() -> None:
        raise InterruptedError("it ends")

    allowance = allowance_of(tokens=100)
    first, second = Part(allowance, 100), Part(allowance, 100, check=check)
    await settle()
    await first.end(0)
    with pytest.raises(InterruptedError):
        await second.task


@pytest.mark.parametrize(
    "scenario",
    [
        expected_tokens_hold_others_back,
        each_part_is_a_request,
        who_cannot_wait_is_not_held_up_by_who_can,
        a_part_that_fails_is_settled,
        a_server_that_ends_is_noticed,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_parts(scenario: Any) -> None:
    asyncio.run(scenario())
