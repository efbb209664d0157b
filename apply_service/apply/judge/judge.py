"""Asks a judge which choice is meant, within its time and budget; hears one letter, or nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from apply_service.apply.choices import Choice
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.judge.answer_form import FORMS, MANNERS, AnswerForm, Dialect
from apply_service.apply.judge.endpoint import (
    JudgeEndpoint,
    JudgeError,
    JudgeRefusedError,
    JudgeUnavailableError,
)
from apply_service.apply.judge.question import Asked, Question, Rehearsal
from apply_service.apply.judge.reply import UNREADABLE, Letter, is_kept, read_letter
from apply_service.apply.judge.word import Word
from batching.cache.circuit_breaker import CircuitBreaker
from batching.request import Priority

_LOGGER = logging.getLogger(__name__)

# A letter that is less ahead of the next one is asked for again, in the opposite order.
MIN_MARGIN = 0.8
# With less time than this left nobody is asked.
MIN_TIME_S = 0.05
_MINUTE_S = 60.0
# Trying all forms takes so many times as long as one question may.
_REHEARSAL_TIMES = 4
_CHAT_PATH, _MODELS_PATH = "/chat/completions", "/models"

# What came of a question. `agreed` named the likeliest choice, `other` another one, `none` none of
# them. `undecided` judges say otherwise when they read the choices in the opposite order.
JudgeResult = Literal[
    "agreed",
    "other",
    "none",
    "undecided",
    "unreadable",
    "refused",
    "failed",
    "timeout",
    "paused",
    "over_budget",
]
Observe = Callable[[JudgeResult, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTerms:
    """What a judge may cost, and how far its word counts.

    `timeout_s` is for one edit, both questions together. `per_minute` edits are asked about in any
    minute. `accuracy` is the probability that the letter is right.
    """

    accuracy: float
    timeout_s: float = 5.0
    per_minute: int = 60


def nobody_observes(_result: JudgeResult, _seconds: float | None) -> None:
    """Where nobody counts."""


class _ModelCard(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_ModelCard]


_MODELS = msgspec.json.Decoder(_ModelList)


@dataclass(frozen=True, slots=True)
class _Known:
    """A server that has been tried: the model that it is asked for, and how it is asked."""

    model: str
    dialect: Dialect


class Judge:
    """A server that is asked about edits in doubt, one at a time or many at once.

    How it answers is tried before the first question, and again after it was down. It never
    raises: whatever goes wrong, there is no word, and `observe` hears why. After failures in a row
    nobody asks for a while. To be used on one event loop.
    """

    def __init__(
        self,
        endpoint: JudgeEndpoint,
        terms: JudgeTerms,
        *,
        model: str | None = None,
        forms: Sequence[AnswerForm] = FORMS,
        observe: Observe = nobody_observes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terms = terms
        self._endpoint = endpoint
        self._model = model
        self._forms = forms
        self._observe = observe
        self._clock = clock
        self._breaker = CircuitBreaker(max_lost_s=2 * terms.timeout_s, clock=clock)
        self._asked: deque[float] = deque()
        self._rehearsal: asyncio.Task[_Known] | None = None

    @property
    def accuracy(self) -> float:
        """The probability that the letter is right."""
        return self._terms.accuracy

    async def ask(
        self, edit: EditRequest, choices: Sequence[Choice], *, left_s: float | None = None
    ) -> Word | None:
        """The choice that the judge names for an edit; None if it names nothing in time.

        `left_s` are the seconds that the edit has left.
        """
        allowed_s = self._terms.timeout_s if left_s is None else min(self._terms.timeout_s, left_s)
        if allowed_s < MIN_TIME_S:
            self._observe("timeout", None)
            return None
        if self._breaker.state == "open":
            self._observe("paused", None)
            return None
        if not self._has_budget(edit):
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
                result, number = await self._hear(known, Question.of(edit, choices))
        except (TimeoutError, JudgeError) as error:
            is_judges = not isinstance(error, TimeoutError) or allowed_s == self._terms.timeout_s
            self._fail(error, is_trial, self._clock() - started, is_judges=is_judges)
            return None
        self._succeed(is_trial, result)
        seconds = self._clock() - started
        self._observe(result, seconds)
        if result in ("undecided", "unreadable"):
            return None
        return Word(
            number=number, accuracy=self._terms.accuracy, model=known.model, seconds=seconds
        )

    def prepare(self) -> None:
        """Begin to try how the server answers, and say if it does not; on the event loop."""
        self._begin_rehearsal().add_done_callback(_say_if_failed)

    async def meet(self) -> str:
        """Try how the server answers; the name of the form. Raises JudgeError."""
        return (await self._meet(is_trial=False)).dialect.form.name

    async def close(self) -> None:
        """Give up what is under way and close the connections."""
        if self._rehearsal is not None:
            self._rehearsal.cancel()
            await asyncio.wait([self._rehearsal])
        await self._endpoint.close()

    async def _hear(self, known: _Known, question: Question) -> tuple[JudgeResult, int | None]:
        """What the judge says of a question, and the number that it names. Raises JudgeError."""
        first = await self._letter(known, question)
        if first is None:
            return "unreadable", None
        number = question.number_of(first.text)
        if first.margin is None or first.margin < MIN_MARGIN:
            turned = question.turned()
            second = await self._letter(known, turned)
            if second is None:
                return "unreadable", None
            if turned.number_of(second.text) != number:
                return "undecided", None
        if number is None:
            return "none", None
        return "other" if number else "agreed", number

    async def _letter(self, known: _Known, asked: Asked) -> Letter | None:
        dialect = known.dialect
        payload = await self._endpoint.post(_CHAT_PATH, dialect.body(asked, model=known.model))
        return read_letter(payload, dialect.form, asked.letters)

    async def _meet(self, is_trial: bool) -> _Known:
        """How the server is asked; tried anew after it was down. Raises JudgeError."""
        task = self._rehearsal
        if task is None or (task.done() and (is_trial or _has_failed(task))):
            task = self._begin_rehearsal()
        return await asyncio.shield(task)

    def _begin_rehearsal(self) -> asyncio.Task[_Known]:
        task = self._rehearsal = asyncio.create_task(self._rehearse())
        task.add_done_callback(_has_failed)  # nobody may be left who waits for it
        return task

    async def _rehearse(self) -> _Known:
        """Try forms until the server keeps to one. Raises JudgeError."""
        try:
            async with asyncio.timeout(_REHEARSAL_TIMES * self._terms.timeout_s):
                model = self._model or await self._first_model()
                dialect = await self._first_dialect(model)
        except TimeoutError as error:
            raise JudgeUnavailableError("the server did not show in time how it answers") from error
        _LOGGER.info("the judge %s answers in the form %s", model, dialect.form.name)
        return _Known(model, dialect)

    async def _first_model(self) -> str:
        payload = await self._endpoint.get(_MODELS_PATH)
        try:
            return _MODELS.decode(payload).data[0].id
        except (*UNREADABLE, IndexError) as error:
            raise JudgeUnavailableError(
                f"{_MODELS_PATH} names no model; set judge_model"
            ) from error

    async def _first_dialect(self, model: str) -> Dialect:
        asked = Rehearsal()
        for form in self._forms:
            for manner in MANNERS:
                dialect = Dialect(form, manner)
                try:
                    payload = await self._endpoint.post(
                        _CHAT_PATH, dialect.body(asked, model=model)
                    )
                except JudgeRefusedError:
                    continue
                if is_kept(payload, form, asked.letters):
                    return dialect
                break  # the server knows the manner and not the form
        raise JudgeUnavailableError("the server answers in no form that is known")

    def _has_budget(self, edit: EditRequest) -> bool:
        """Count an edit if there is room; edits in batch priority leave half of it to others."""
        now = self._clock()
        while self._asked and self._asked[0] <= now - _MINUTE_S:
            self._asked.popleft()
        is_batch = edit.priority == Priority.BATCH
        limit = self._terms.per_minute // 2 if is_batch else self._terms.per_minute
        if len(self._asked) >= limit:
            return False
        self._asked.append(now)
        return True

    def _succeed(self, is_trial: bool, result: JudgeResult) -> None:
        """A server that answers with anything but letters is as bad as one that is down."""
        if result == "unreadable":
            self._count_failure("it answers with no letter", is_trial, lost_s=0.0)
        elif is_trial:
            self._breaker.trial_succeeded()
            _LOGGER.info("the judge answers again")
        else:
            self._breaker.succeeded()

    def _fail(self, error: Exception, is_trial: bool, seconds: float, *, is_judges: bool) -> None:
        """Note that there is no word, and count it if the judge is to blame."""
        if isinstance(error, TimeoutError):
            result: JudgeResult = "timeout"
            reason = "it did not answer in time"
        else:
            result = "refused" if isinstance(error, JudgeRefusedError) else "failed"
            reason = str(error)
        self._observe(result, seconds)
        if is_judges:
            self._count_failure(reason, is_trial, lost_s=seconds)

    def _count_failure(self, reason: str, is_trial: bool, *, lost_s: float) -> None:
        was_open = not self._breaker.can_pass
        if is_trial:
            self._breaker.trial_failed()
        else:
            self._breaker.failed(lost_s=lost_s)
        if not was_open and not self._breaker.can_pass:
            _LOGGER.warning("the judge is not asked for a while: %s", reason)


def _has_failed(task: asyncio.Task[_Known]) -> bool:
    return task.cancelled() or task.exception() is not None


def _say_if_failed(task: asyncio.Task[_Known]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _LOGGER.warning("the judge cannot be asked yet: %s", task.exception())
