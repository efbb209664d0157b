"""Answers in OpenAI's form: a whole completion, or chunks of one as server-sent events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from apply_service.http.compat.schemas import (
    AnswerMessage,
    ApplyNote,
    ChatChunk,
    ChatCompletion,
    ChatUsage,
    Choice,
    ChoiceLogprobs,
    ChunkChoice,
    CompletionTokensDetails,
    Delta,
    FinishReason,
    PromptTokensDetails,
)
from batching.events import RequestStats

# Characters of a chunk when the whole answer is there before its first byte is sent.
PIECE_CHARACTERS = 2048
STREAM_END = b"data: [DONE]\n\n"
# What the answer itself has said before does not come from a prediction.
_OWN_OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHead:
    """Members that every chunk of an answer repeats; `created` is seconds since 1970."""

    id: str
    model: str
    system_fingerprint: str
    created: int

    @classmethod
    def of(cls, request_id: str, *, model: str, system_fingerprint: str) -> AnswerHead:
        """The head of the answer to a request, which keeps its hexadecimal name."""
        return cls(
            id=f"chatcmpl-{request_id.rpartition('-')[2]}",
            model=model,
            system_fingerprint=system_fingerprint,
            created=int(time.time()),
        )


def usage_of(stats: RequestStats, *, num_predicted_tokens: int | None = None) -> ChatUsage:
    """Token counts; accepted draft tokens are part of the completion tokens.

    With a number of predicted tokens those are what is accepted or not. Without one, drafts are,
    which are made from the file and the update again and again.
    """
    figures = [reference for name, reference in stats.by_reference.items() if name != _OWN_OUTPUT]
    num_drafted = num_predicted_tokens
    if num_drafted is None:
        num_drafted = sum(reference.drafted for reference in figures)
    num_accepted = sum(reference.accepted for reference in figures)
    num_accepted = min(num_accepted, num_drafted, stats.num_output_tokens)
    return ChatUsage(
        prompt_tokens=stats.num_prompt_tokens,
        completion_tokens=stats.num_output_tokens,
        total_tokens=stats.num_prompt_tokens + stats.num_output_tokens,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=stats.num_cached_tokens),
        completion_tokens_details=CompletionTokensDetails(
            accepted_prediction_tokens=num_accepted,
            rejected_prediction_tokens=num_drafted - num_accepted,
        ),
    )


def completion_of(
    head: AnswerHead,
    text: str,
    *,
    finish_reason: FinishReason,
    usage: ChatUsage,
    logprobs: ChoiceLogprobs | None = None,
    apply: ApplyNote | None = None,
) -> ChatCompletion:
    """A whole answer."""
    choice = Choice(
        message=AnswerMessage(content=text), finish_reason=finish_reason, logprobs=logprobs
    )
    return ChatCompletion(
        id=head.id,
        created=head.created,
        model=head.model,
        choices=[choice],
        usage=usage,
        system_fingerprint=head.system_fingerprint,
        apply=UNSET if apply is None else apply,
    )


class ChunkWriter:
    """Writes the chunks of one streamed answer, in order: pieces, the end, perhaps the usage."""

    def __init__(self, head: AnswerHead, *, has_usage_chunk: bool) -> None:
        """With a usage chunk, which comes last, all other chunks have `usage: null`."""
        self._head = head
        self._has_usage_chunk = has_usage_chunk
        self._is_begun = False

    def piece(self, text: str, logprobs: ChoiceLogprobs | None = None) -> bytes:
        """A chunk with text; the first one also has the role."""
        delta = Delta(role=None if self._is_begun else "assistant", content=text)
        self._is_begun = True
        return self._chunk([ChunkChoice(delta=delta, logprobs=logprobs)])

    def end(self, finish_reason: FinishReason, **members: Any) -> bytes:
        """The last chunk of the answer, with members of its own."""
        return self._chunk([ChunkChoice(delta=Delta(), finish_reason=finish_reason)], **members)

    def usage(self, usage: ChatUsage) -> bytes:
        """The usage chunk after the answer; empty unless the request asked for it."""
        return self._chunk([], usage=usage) if self._has_usage_chunk else b""

    def _chunk(self, choices: list[ChunkChoice], **members: Any) -> bytes:
        if self._has_usage_chunk:
            members.setdefault("usage", None)
        head = self._head
        return sse(
            ChatChunk(
                id=head.id,
                created=head.created,
                model=head.model,
                choices=choices,
                system_fingerprint=head.system_fingerprint,
                **members,
            )
        )


def sse(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: %s\n\n" % msgspec.json.encode(value)


def pieces_of(text: str) -> Iterator[str]:
    """Cut a text into pieces, one at least."""
    yield text[:PIECE_CHARACTERS]
    for start in range(PIECE_CHARACTERS, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]
