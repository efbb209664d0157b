"""Answers of `/v1/chat/completions`: a whole completion, or chunks of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from apply_service.http.compat.answer_form import AnswerEnd, AnswerHead, sse
from apply_service.http.compat.error_shapes import openai_error
from apply_service.http.compat.schemas import (
    AnswerMessage,
    ChatChunk,
    ChatCompletion,
    ChatUsage,
    Choice,
    ChoiceLogprobs,
    ChunkChoice,
    CompletionTokensDetails,
    Delta,
    LogprobToken,
    PromptTokensDetails,
)
from apply_service.http.problems import Problem

_STREAM_END = b"data: [DONE]\n\n"
# What the answer itself has said before does not come from a prediction.
_OWN_OUTPUT = "output"


def usage_of(end: AnswerEnd) -> ChatUsage:
    """Token counts; accepted draft tokens are part of the completion tokens.

    With a number of predicted tokens those are what is accepted or not. Without one, drafts are,
    which are made from the file and the update again and again.
    """
    stats, num_drafted = end.stats, end.num_predicted_tokens
    figures = [reference for name, reference in stats.by_reference.items() if name != _OWN_OUTPUT]
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


class ChatForm:
    """Writes an answer in the form of a chat completion."""

    def __init__(
        self, head: AnswerHead, *, has_usage_chunk: bool = False, has_usage_at_end: bool = False
    ) -> None:
        """With a usage chunk, which comes last, all other chunks have `usage: null`.

        With usage at the end, it stands in the last chunk of the answer itself.
        """
        self._head = head
        self._id = f"chatcmpl-{head.hex_id}"
        self._has_usage_chunk = has_usage_chunk
        self._has_usage_at_end = has_usage_at_end

    def whole(
        self, text: str, end: AnswerEnd, logprobs: Sequence[LogprobToken] | None
    ) -> ChatCompletion:
        """A completion; `apply` is there for an edit."""
        head = self._head
        choice = Choice(
            message=AnswerMessage(content=text),
            finish_reason=end.reason,
            logprobs=_logprobs_of(logprobs),
        )
        return ChatCompletion(
            id=self._id,
            created=head.created,
            model=head.model,
            choices=[choice],
            usage=usage_of(end),
            system_fingerprint=head.system_fingerprint,
            apply=UNSET if end.note is None else end.note,
        )

    def begin(self) -> bytes:
        """A chunk that says whose the answer is."""
        return self._chunk([ChunkChoice(delta=Delta(role="assistant", content=""))])

    def piece(self, text: str, logprobs: Sequence[LogprobToken] | None) -> bytes:
        """A chunk with text."""
        choice = ChunkChoice(delta=Delta(content=text), logprobs=_logprobs_of(logprobs))
        return self._chunk([choice])

    def end(self, end: AnswerEnd) -> bytes:
        """The last chunk of the answer, with the verdict of an edit; perhaps the usage chunk."""
        members: dict[str, Any] = {} if end.note is None else {"apply": end.note}
        if self._has_usage_at_end:
            members["usage"] = usage_of(end)
        last = self._chunk([ChunkChoice(delta=Delta(), finish_reason=end.reason)], **members)
        usage = self._chunk([], usage=usage_of(end)) if self._has_usage_chunk else b""
        return last + usage + _STREAM_END

    def failure(self, problem: Problem) -> bytes:
        """An event that OpenAI's clients raise as an error."""
        return sse(openai_error(problem))

    def _chunk(self, choices: list[ChunkChoice], **members: Any) -> bytes:
        if self._has_usage_chunk:
            members.setdefault("usage", None)
        head = self._head
        return sse(
            ChatChunk(
                id=self._id,
                created=head.created,
                model=head.model,
                choices=choices,
                system_fingerprint=head.system_fingerprint,
                **members,
            )
        )


def _logprobs_of(tokens: Sequence[LogprobToken] | None) -> ChoiceLogprobs | None:
    return None if tokens is None else ChoiceLogprobs(content=list(tokens))
