"""Requests sent to a service at fixed times, and what became of each."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import msgspec

Ending = Literal["answered", "rejected", "busy", "late", "failed"]

# Longer than the deadline that the service keeps itself: who is not answered then never will be.
_PATIENCE_S = 10.0
_BUSY_STATUSES = (429, 503)
_LATE_CODE = "deadline-exceeded"
_VERDICT_CODE = "rejected"


@dataclass(frozen=True, slots=True)
class TimedReply:
    """The end of one request, and its seconds since its scheduled arrival.

    `rejected` is an answer too: the verdict on an edit. `late` is any answer after the deadline,
    also the service's own word that it passed. `problem` says what `failed` means.
    """

    ending: Ending
    seconds: float
    problem: str | None = None


class _Problem(msgspec.Struct, frozen=True):
    """What is read of an error."""

    code: str | None = None


async def send_open_loop(
    client: httpx.AsyncClient,
    bodies: Sequence[Mapping[str, Any]],
    arrivals: Sequence[float],
    *,
    deadline_s: float,
) -> list[TimedReply]:
    """Send one body after the other at its time, waiting for none, and wait for all of them."""
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        sent = [
            group.create_task(_send_at(client, body, started + at, deadline_s=deadline_s))
            for body, at in zip(bodies, arrivals, strict=True)
        ]
    return [task.result() for task in sent]


def open_client(url: str, *, api_key: str | None, deadline_s: float) -> httpx.AsyncClient:
    """A client without limits of its own: a request never waits for another one's connection."""
    return httpx.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
        timeout=deadline_s + _PATIENCE_S,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
    )


async def _send_at(
    client: httpx.AsyncClient, body: Mapping[str, Any], due: float, *, deadline_s: float
) -> TimedReply:
    """Whatever delays the sending counts: seconds run from `due`."""
    content = msgspec.json.encode({**body, "deadline_s": deadline_s})
    await asyncio.sleep(due - time.perf_counter())
    try:
        response = await client.post(
            "/v1/apply", content=content, headers={"Content-Type": "application/json"}
        )
    except httpx.TimeoutException:
        return TimedReply("late", time.perf_counter() - due)
    except httpx.HTTPError as error:
        problem = str(error) or type(error).__name__
        return TimedReply("failed", time.perf_counter() - due, problem)
    seconds = time.perf_counter() - due
    return _judge(response, seconds, deadline_s=deadline_s)


def _judge(response: httpx.Response, seconds: float, *, deadline_s: float) -> TimedReply:
    code = _code_of(response)
    if response.status_code in _BUSY_STATUSES:
        return TimedReply("busy", seconds)
    if code == _LATE_CODE:
        return TimedReply("late", seconds)
    if response.status_code != 200 and code != _VERDICT_CODE:
        problem = f"status {response.status_code}: {response.text[:200]}"
        return TimedReply("failed", seconds, problem)
    if seconds > deadline_s:
        return TimedReply("late", seconds)
    return TimedReply("answered" if response.status_code == 200 else "rejected", seconds)


def _code_of(response: httpx.Response) -> str | None:
    """The code of a problem; None for an answer, and for what no such service says."""
    if response.status_code == 200:
        return None
    try:
        return msgspec.json.decode(response.content, type=_Problem).code
    except msgspec.DecodeError:
        return None


def poisson_arrivals(rate: float, *, seconds: float, seed: int) -> list[float]:
    """Ascending times below `seconds`, `rate` a second on average, one at least.

    The same arguments give the same times, so that all modes get the same arrivals.
    """
    draws = random.Random(seed)
    arrivals = []
    at = draws.expovariate(rate)
    while at < seconds:
        arrivals.append(at)
        at += draws.expovariate(rate)
    return arrivals or [0.0]
