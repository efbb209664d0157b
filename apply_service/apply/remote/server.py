"""Asks a model at a server within its time and budget; whatever goes wrong, there is no answer."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from apply_service.apply.remote.chat_reply import UNREADABLE
from apply_service.apply.remote.endpoint import (
    RemoteEndpoint,
    RemoteError,
    RemoteRefusedError,
    RemoteUnavailableError,
    RemoteUnreadableError,
)
from apply_service.shown_text import shown_line
from batching.cache.redis.circuit_breaker import MAX_FAILURES, CircuitBreaker
from batching.request import Priority

_LOGGER = logging.getLogger(__name__)

# With less time than this left nobody is asked.
MIN_TIME_S = 0.05
_MINUTE_S = 60.0
# Trying all forms takes so many times as long as one question may.
_REHEARSAL_TIMES = 4
_CHAT_PATH, _MODELS_PATH = "/chat/completions", "/models"

# Why there is no answer.
Failure = Literal["unreadable", "refused", "failed", "timeout", "paused", "over_budget"]
ObserveFailure = Callable[[Failure, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTerms:
    """What a server may cost: `timeout_s` for one edit, and `per_minute` edits in any minute.

    What it says of a merge is right with `accuracy`. After failures it `may_rest`.
    """

    accuracy: float
    timeout_s: float
    per_minute: int = 60
    may_rest: bool = True


class Form(Protocol):
    """How a server is asked."""

    @property
    def name(self) -> str:
        """The name of the form, for logs and figures."""


F = TypeVar("F", bound=Form)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[F]):
    """A server that has been tried: the model that it is asked for, and how it is asked."""

    model: str
    form: F


@dataclass(frozen=True, slots=True)
class Heard(Generic[T]):
    """What a model said, its name as it is shown, and the seconds that it took."""

    said: T
    model: str
    seconds: float


class _ModelCard(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_ModelCard]


_MODELS = msgspec.json.Decoder(_ModelList)


class RemoteServer(Generic[F]):
    """A server that is asked about edits, one at a time or many at once.

    How it is asked is tried before the first question, and again after it was down: `rehearse`
    tries the forms with a model. After failures in a row nobody asks for a while. `observe` hears
    why there was no answer. To be used on one event loop.
    """

    def __init__(
        self,
        endpoint: RemoteEndpoint,
        terms: RemoteTerms,
        *,
        rehearse: Callable[[str], Awaitable[F]],
        observe: ObserveFailure,
        model: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = endpoint.role.name
        self._endpoint = endpoint
        self._terms = terms
        self._rehearse = rehearse
        self._observe = observe
        self._model = model
        self._clock = clock
        self._breaker = CircuitBreaker(
            max_failures=MAX_FAILURES if terms.may_rest else sys.maxsize,
            max_lost_s=2 * terms.timeout_s if terms.may_rest else math.inf,
            clock=clock,
        )
        self._asked: deque[float] = deque()
        self._rehearsal: asyncio.Task[Known[F]] | None = None

    async def ask(
        self,
        talk: Callable[[Known[F]], Awaitable[T]],
        *,
        priority: Priority,
        left_s: float | None = None,
    ) -> Heard[T] | None:
        """What `talk` hears, which may raise RemoteError; None if that is nothing in time.

        `left_s` are the seconds that the edit has left.
        """
        allowed_s = self._terms.timeout_s if left_s is None else min(self._terms.timeout_s, left_s)
        if allowed_s < MIN_TIME_S:
            self._observe("timeout", None)
            return None
        if self._breaker.state == "open":
            self._observe("paused", None)
            return None
        if not self._has_budget(priority):
            self._observe("over_budget", None)
            return None
        is_trial = not self._breaker.can_pass
        if is_trial and not self._breaker.try_begin_trial():
            self._observe("paused", None)
            return None
        started = self._clock()
        try:
            async with asyncio.timeout(allowed_s):
                known = await self._meet(is_trial)
                said = await talk(known)
        except (TimeoutError, RemoteError) as error:
            is_servers = not isinstance(error, TimeoutError) or allowed_s == self._terms.timeout_s
            self._fail(error, is_trial, self._clock() - started, is_servers=is_servers)
            return None
        self._succeed(is_trial)
        return Heard(said, shown_line(known.model), self._clock() - started)

    async def chat(self, body: dict[str, Any]) -> bytes:
        """The answer to a chat. Raises RemoteError."""
        return await self._endpoint.post(_CHAT_PATH, body)

    def prepare(self) -> None:
        """Begin to try how the server answers, and say if it does not; on the event loop."""
        self._begin_rehearsal().add_done_callback(self._say_if_failed)

    async def meet(self) -> str:
        """Try how the server answers; the name of the form. Raises RemoteError."""
        return (await self._meet(is_trial=False)).form.name

    async def close(self) -> None:
        """Give up what is under way and close the connections."""
        if self._rehearsal is not None:
            self._rehearsal.cancel()
            await asyncio.wait([self._rehearsal])
        await self._endpoint.close()

    async def _meet(self, is_trial: bool) -> Known[F]:
        """How the server is asked; tried anew after it was down. Raises RemoteError."""
        task = self._rehearsal
        if task is None or (task.done() and (is_trial or _has_failed(task))):
            task = self._begin_rehearsal()
        return await asyncio.shield(task)

    def _begin_rehearsal(self) -> asyncio.Task[Known[F]]:
        task = self._rehearsal = asyncio.create_task(self._try_out())
        task.add_done_callback(_has_failed)  # nobody may be left who waits for it
        return task

    async def _try_out(self) -> Known[F]:
        """Find model and form. Raises RemoteError."""
        try:
            async with asyncio.timeout(_REHEARSAL_TIMES * self._terms.timeout_s):
                model = self._model or await self._first_model()
                form = await self._rehearse(model)
        except TimeoutError as error:
            raise RemoteUnavailableError(
                "the server did not show in time how it answers"
            ) from error
        _LOGGER.info("the %s %s answers in the form %s", self.name, shown_line(model), form.name)
        return Known(model, form)

    async def _first_model(self) -> str:
        payload = await self._endpoint.get(_MODELS_PATH)
        try:
            return _MODELS.decode(payload).data[0].id
        except (*UNREADABLE, IndexError) as error:
            raise RemoteUnavailableError(
                f"{_MODELS_PATH} names no model; set {self.name}_model"
            ) from error

    def _has_budget(self, priority: Priority) -> bool:
        """Count an edit if there is room; edits in batch priority leave half of it to others."""
        now = self._clock()
        while self._asked and self._asked[0] <= now - _MINUTE_S:
            self._asked.popleft()
        is_batch = priority == Priority.BATCH
        limit = self._terms.per_minute // 2 if is_batch else self._terms.per_minute
        if len(self._asked) >= limit:
            return False
        self._asked.append(now)
        return True

    def _succeed(self, is_trial: bool) -> None:
        if is_trial:
            self._breaker.trial_succeeded()
            _LOGGER.info("the %s answers again", self.name)
        else:
            self._breaker.succeeded()

    def _fail(self, error: Exception, is_trial: bool, seconds: float, *, is_servers: bool) -> None:
        """Note that there is no answer, and count it if the server is to blame.

        One that answers with anything but what it is asked for is as bad as one that is down.
        """
        lost_s = seconds
        result: Failure = "failed"
        reason = str(error)
        if isinstance(error, TimeoutError):
            result, reason = "timeout", "it did not answer in time"
        elif isinstance(error, RemoteUnreadableError):
            result, lost_s = "unreadable", 0.0
        elif isinstance(error, RemoteRefusedError):
            result = "refused"
        self._observe(result, seconds)
        if is_servers:
            self._count_failure(reason, is_trial, lost_s=lost_s)

    def _count_failure(self, reason: str, is_trial: bool, *, lost_s: float) -> None:
        was_open = not self._breaker.can_pass
        if is_trial:
            self._breaker.trial_failed()
        else:
            self._breaker.failed(lost_s=lost_s)
        if not was_open and not self._breaker.can_pass:
            _LOGGER.warning("the %s is not asked for a while: %s", self.name, reason)

    def _say_if_failed(self, task: asyncio.Task[Known[F]]) -> None:
        if not task.cancelled() and task.exception() is not None:
            _LOGGER.warning("the %s cannot be asked yet: %s", self.name, task.exception())


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.cancelled() or task.exception() is not None
