"""Answers of `/v1/messages`: a whole message, or its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from apply_service.http.compat.answer_form import AnswerEnd, AnswerHead, sse
from apply_service.http.compat.anthropic.schemas import (
    AnthropicMessage,
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageDelta,
    MessageStart,
    MessageStop,
    MessageUsage,
    StopDelta,
    StopReason,
    TextBlock,
    TextDelta,
)
from apply_service.http.compat.error_shapes import anthropic_error
from apply_service.http.compat.schemas import LogprobToken
from apply_service.http.problems import Problem


class AnthropicForm:
    """Writes an answer in the form of a message with one block of text."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head

    def whole(
        self, text: str, end: AnswerEnd, logprobs: Sequence[LogprobToken] | None
    ) -> AnthropicMessage:
        """A message; `apply` is there for an edit."""
        return AnthropicMessage(
            id=self._id,
            model=self._head.model,
            content=[TextBlock(text=text)],
            usage=_usage_of(end),
            stop_reason=_stop_reason_of(end),
            stop_sequence=end.stop_text,
            apply=UNSET if end.note is None else end.note,
        )

    def begin(self) -> bytes:
        """The message without its text; what comes of the cache is known at the end."""
        head = self._head
        message = AnthropicMessage(
            id=self._id,
            model=head.model,
            content=[],
            usage=MessageUsage(input_tokens=head.num_prompt_tokens, output_tokens=0),
            stop_reason=None,
        )
        return _event(MessageStart(message=message)) + _event(BlockStart())

    def piece(self, text: str, logprobs: Sequence[LogprobToken] | None) -> bytes:
        """A piece of the text."""
        return _event(BlockDelta(delta=TextDelta(text=text)))

    def end(self, end: AnswerEnd) -> bytes:
        """The end of the text, then that of the message."""
        delta = MessageDelta(
            delta=StopDelta(stop_reason=_stop_reason_of(end), stop_sequence=end.stop_text),
            usage=_usage_of(end),
            apply=UNSET if end.note is None else end.note,
        )
        return _event(BlockStop()) + _event(delta) + _event(MessageStop())

    def failure(self, problem: Problem) -> bytes:
        """An event that Anthropic's clients raise as an error."""
        return _event(anthropic_error(problem))

    @property
    def _id(self) -> str:
        return f"msg_{self._head.hex_id}"


def _event(event: Any) -> bytes:
    return sse(event, name=event.type)


def _stop_reason_of(end: AnswerEnd) -> StopReason:
    if end.stop_text is not None:
        return "stop_sequence"
    return "max_tokens" if end.reason == "length" else "end_turn"


def _usage_of(end: AnswerEnd) -> MessageUsage:
    stats = end.stats
    return MessageUsage(
        input_tokens=stats.num_prompt_tokens - stats.num_cached_tokens,
        output_tokens=stats.num_output_tokens,
        cache_read_input_tokens=stats.num_cached_tokens,
    )
