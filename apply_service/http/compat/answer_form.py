"""Answers in the form of an API: whole, or as server-sent events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from apply_service.http.compat.schemas import ApplyNote, FinishReason, LogprobToken
from apply_service.http.problems import Problem
from batching.events import RequestStats

# Characters of an event when the whole answer is there before its first byte is sent.
PIECE_CHARACTERS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHead:
    """What is known of an answer before its text.

    `hex_id` is the hexadecimal name of the request, `created` is seconds since 1970.
    """

    hex_id: str
    model: str
    system_fingerprint: str
    created: int
    num_prompt_tokens: int

    @classmethod
    def of(
        cls, request_id: str, *, model: str, system_fingerprint: str, num_prompt_tokens: int
    ) -> AnswerHead:
        """The head of the answer to a request, which keeps its hexadecimal name."""
        return cls(
            hex_id=request_id.rpartition("-")[2],
            model=model,
            system_fingerprint=system_fingerprint,
            created=int(time.time()),
            num_prompt_tokens=num_prompt_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEnd:
    """The end of an answer.

    `stop_text` is the caller's text that ended it. `num_predicted_tokens` are those of the
    caller's prediction, None for an edit. An edit has the verdict as a `note`.
    """

    reason: FinishReason
    stats: RequestStats
    stop_text: str | None = None
    num_predicted_tokens: int | None = None
    note: ApplyNote | None = None


class AnswerForm(Protocol):
    """Writes one answer: `whole`, or `begin`, pieces and then `end` or `failure`.

    Log-probabilities are None where the request did not ask for them.
    """

    def whole(
        self, text: str, end: AnswerEnd, logprobs: Sequence[LogprobToken] | None
    ) -> msgspec.Struct:
        """The body of an answer that is not streamed."""

    def begin(self) -> bytes:
        """The events before the first piece."""

    def piece(self, text: str, logprobs: Sequence[LogprobToken] | None) -> bytes:
        """The events of a piece of text."""

    def end(self, end: AnswerEnd) -> bytes:
        """All events behind the last piece."""

    def failure(self, problem: Problem) -> bytes:
        """The last events of an answer that cannot be written to its end."""


# Makes the form of one answer when its head is known.
FormMaker = Callable[[AnswerHead], AnswerForm]


def sse(value: Any, *, name: str | None = None) -> bytes:
    """One server-sent event."""
    event = b"" if name is None else b"event: %s\n" % name.encode()
    return b"%sdata: %s\n\n" % (event, msgspec.json.encode(value))


def pieces_of(text: str) -> Iterator[str]:
    """Cut a text into pieces, one at least."""
    yield text[:PIECE_CHARACTERS]
    for start in range(PIECE_CHARACTERS, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]
