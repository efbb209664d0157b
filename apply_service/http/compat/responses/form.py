"""Answers of `/v1/responses`: a whole response, or its numbered events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from apply_service.http.compat.answer_form import AnswerEnd, AnswerHead, sse
from apply_service.http.compat.error_shapes import openai_error
from apply_service.http.compat.responses.schemas import (
    IncompleteDetails,
    InputTokensDetails,
    ItemEvent,
    OutputMessage,
    OutputText,
    PartEvent,
    ResponseError,
    ResponseEvent,
    ResponseObject,
    ResponsesBody,
    ResponseUsage,
    TextDeltaEvent,
    TextDoneEvent,
)
from apply_service.http.compat.schemas import LogprobToken
from apply_service.http.problems import Problem


class ResponsesForm:
    """Writes an answer in the form of a response with one message.

    An answer that reached its limit of tokens is `incomplete`, one that failed on its way `failed`.
    """

    def __init__(self, head: AnswerHead, *, body: ResponsesBody) -> None:
        """`body` is the request's, of which the response repeats the options."""
        self._head = head
        self._body = body
        self._item_id = f"msg_{head.hex_id}"
        self._num_events = 0
        self._text: list[str] = []
        self._logprobs: list[LogprobToken] = []

    def whole(
        self, text: str, end: AnswerEnd, logprobs: Sequence[LogprobToken] | None
    ) -> ResponseObject:
        """A response; `apply` is there for an edit."""
        return self._ended(end, self._message(text, list(logprobs or ()), end))

    def begin(self) -> bytes:
        """The response without its message, then the message without its text."""
        begun = self._response("in_progress")
        item = OutputMessage(id=self._item_id, status="in_progress", content=[])
        return b"".join(
            (
                self._event(ResponseEvent, type="response.created", response=begun),
                self._event(ResponseEvent, type="response.in_progress", response=begun),
                self._event(ItemEvent, type="response.output_item.added", item=item),
                self._event(
                    PartEvent,
                    type="response.content_part.added",
                    item_id=self._item_id,
                    part=OutputText(text=""),
                ),
            )
        )

    def piece(self, text: str, logprobs: Sequence[LogprobToken] | None) -> bytes:
        """A piece of the text."""
        tokens = list(logprobs or ())
        self._text.append(text)
        self._logprobs += tokens
        return self._event(TextDeltaEvent, item_id=self._item_id, delta=text, logprobs=tokens)

    def end(self, end: AnswerEnd) -> bytes:
        """The whole text, the whole message, and the whole response."""
        text = "".join(self._text)
        item = self._message(text, self._logprobs, end)
        response = self._ended(end, item)
        return b"".join(
            (
                self._event(
                    TextDoneEvent, item_id=self._item_id, text=text, logprobs=self._logprobs
                ),
                self._event(
                    PartEvent,
                    type="response.content_part.done",
                    item_id=self._item_id,
                    part=item.content[0],
                ),
                self._event(ItemEvent, type="response.output_item.done", item=item),
                self._event(ResponseEvent, type=f"response.{response.status}", response=response),
            )
        )

    def failure(self, problem: Problem) -> bytes:
        """The response with its error, and with the text that is there."""
        error = openai_error(problem).error
        text = OutputText(text="".join(self._text), logprobs=self._logprobs)
        failed = self._response(
            "failed",
            output=[OutputMessage(id=self._item_id, status="incomplete", content=[text])],
            error=ResponseError(
                code=_failure_code_of(problem),
                message=error.message,
                type=error.type,
                param=error.param,
            ),
        )
        return self._event(ResponseEvent, type="response.failed", response=failed)

    def _message(self, text: str, logprobs: list[LogprobToken], end: AnswerEnd) -> OutputMessage:
        return OutputMessage(
            id=self._item_id,
            status="incomplete" if end.reason == "length" else "completed",
            content=[OutputText(text=text, logprobs=logprobs)],
        )

    def _ended(self, end: AnswerEnd, item: OutputMessage) -> ResponseObject:
        is_whole = end.reason != "length"
        stats = end.stats
        return self._response(
            "completed" if is_whole else "incomplete",
            output=[item],
            completed_at=int(time.time()) if is_whole else None,
            incomplete_details=None if is_whole else IncompleteDetails(),
            usage=ResponseUsage(
                input_tokens=stats.num_prompt_tokens,
                output_tokens=stats.num_output_tokens,
                total_tokens=stats.num_prompt_tokens + stats.num_output_tokens,
                input_tokens_details=InputTokensDetails(cached_tokens=stats.num_cached_tokens),
            ),
            apply=UNSET if end.note is None else end.note,
        )

    def _response(self, status: Any, **members: Any) -> ResponseObject:
        head, body = self._head, self._body
        known: dict[str, Any] = {
            "completed_at": None,
            "output": [],
            "usage": None,
            "error": None,
            "incomplete_details": None,
        }
        return ResponseObject(
            id=f"resp_{head.hex_id}",
            created_at=head.created,
            status=status,
            model=head.model,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            temperature=body.temperature,
            top_p=body.top_p,
            **(known | members),
        )

    def _event(self, kind: type[msgspec.Struct], **members: Any) -> bytes:
        event: Any = kind(sequence_number=self._num_events, **members)
        self._num_events += 1
        return sse(event, name=event.type)


def _failure_code_of(problem: Problem) -> str:
    """OpenAI's code for a response that failed; there are few."""
    if problem.status == 429:
        return "rate_limit_exceeded"
    return "server_error" if problem.status >= 500 else "invalid_prompt"
