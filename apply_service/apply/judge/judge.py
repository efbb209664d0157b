"""Asks a judge which choice is meant; hears one letter, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from apply_service.apply.choices import Choice
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.judge.answer_form import FORMS, MANNERS, AnswerForm, Dialect
from apply_service.apply.judge.question import Asked, Question, Rehearsal
from apply_service.apply.judge.reply import Letter, is_kept, read_letter
from apply_service.apply.judge.word import Word
from apply_service.apply.remote.endpoint import (
    RemoteEndpoint,
    RemoteRefusedError,
    RemoteUnavailableError,
    RemoteUnreadableError,
)
from apply_service.apply.remote.server import Failure, Known, RemoteServer, RemoteTerms

# A letter that is less ahead of the next one is asked for again, in the opposite order.
MIN_MARGIN = 0.8

# What was said. `agreed` named the likeliest choice, `other` another one, `none` none of them.
# `undecided` judges say otherwise when they read the choices in the opposite order.
Said = Literal["agreed", "other", "none", "undecided"]
JudgeResult = Said | Failure
Observe = Callable[[JudgeResult, float | None], None]


def nobody_observes(_result: JudgeResult, _seconds: float | None) -> None:
    """Where nobody counts."""


class Judge:
    """A model that is asked about edits in doubt.

    It never raises: whatever goes wrong, there is no word, and `observe` hears why.
    """

    def __init__(
        self,
        endpoint: RemoteEndpoint,
        terms: RemoteTerms,
        *,
        model: str | None = None,
        forms: Sequence[AnswerForm] = FORMS,
        observe: Observe = nobody_observes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.accuracy = terms.accuracy
        self._forms = forms
        self._observe = observe
        self._server = RemoteServer(
            endpoint,
            terms,
            rehearse=self._first_dialect,
            observe=observe,
            model=model,
            clock=clock,
        )
        self.prepare = self._server.prepare
        self.meet = self._server.meet
        self.close = self._server.close

    async def ask(
        self, edit: EditRequest, choices: Sequence[Choice], *, left_s: float | None = None
    ) -> Word | None:
        """The choice that the judge names for an edit; None if it names nothing in time.

        `left_s` are the seconds that the edit has left.
        """
        question = Question.of(edit, choices)
        heard = await self._server.ask(
            partial(self._hear, question), priority=edit.priority, left_s=left_s
        )
        if heard is None:
            return None
        said, number = heard.said
        self._observe(said, heard.seconds)
        if said == "undecided":
            return None
        return Word(number=number, accuracy=self.accuracy, model=heard.model, seconds=heard.seconds)

    async def _hear(self, question: Question, known: Known[Dialect]) -> tuple[Said, int | None]:
        """What the judge says of a question, and the number that it names. Raises RemoteError."""
        first = await self._letter(known, question)
        number = question.number_of(first.text)
        if first.margin is None or first.margin < MIN_MARGIN:
            turned = question.turned()
            second = await self._letter(known, turned)
            if turned.number_of(second.text) != number:
                return "undecided", None
        if number is None:
            return "none", None
        return "other" if number else "agreed", number

    async def _letter(self, known: Known[Dialect], asked: Asked) -> Letter:
        dialect = known.form
        payload = await self._server.chat(dialect.body(asked, model=known.model))
        letter = read_letter(payload, dialect.form, asked.letters)
        if letter is None:
            raise RemoteUnreadableError("it answers with no letter")
        return letter

    async def _first_dialect(self, model: str) -> Dialect:
        """The first form in which the server keeps to a letter. Raises RemoteError."""
        asked = Rehearsal()
        for form in self._forms:
            for manner in MANNERS:
                dialect = Dialect(form, manner)
                try:
                    payload = await self._server.chat(dialect.body(asked, model=model))
                except RemoteRefusedError:
                    continue
                if is_kept(payload, form, asked.letters):
                    return dialect
                break  # the server knows the manner and not the form
        raise RemoteUnavailableError("the server answers in no form that is known")
