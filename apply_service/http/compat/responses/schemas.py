"""The wire format of `/v1/responses`, as OpenAI defines it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from apply_service.http.compat.schemas import ApplyNote, ContentPart, LogprobToken
from apply_service.http.schemas import ChosenId

ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed"]


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of the input; only messages can be read."""

    type: str | None = None
    role: str | None = None
    content: str | list[ContentPart] | None = None


class TextConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How the text is to be written; only plain text is."""

    format: Any = None
    verbosity: Any = None


class ReasoningConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is to reason before it answers; none here does."""

    effort: Any = None
    summary: Any = None


class ResponsesBody(msgspec.Struct, frozen=True, kw_only=True):
    """A text or messages, the last of the user with an edit in it: `<code>` and `<update>`.

    Unknown fields are ignored. Those without a type here are refused unless they change nothing.
    """

    input: str | Annotated[list[InputItem], Meta(min_length=1)]
    instructions: str | None = None
    model: str | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    include: list[str] | None = None
    metadata: dict[str, str] | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    top_logprobs: Any = None
    truncation: Any = None
    tools: Any = None
    tool_choice: Any = None
    previous_response_id: Any = None
    conversation: Any = None
    background: Any = None
    prompt: Any = None
    moderation: Any = None
    context_management: Any = None
    resolve: ChosenId = None


class InputTokensDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the prompt that were not computed again."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputTokensDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that were thought and not said."""

    reasoning_tokens: int = 0


class ResponseUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that the model read and wrote."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens_details: OutputTokensDetails = OutputTokensDetails()


class OutputText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the answer."""

    text: str
    type: Literal["output_text"] = "output_text"
    annotations: list[Any] = []
    logprobs: list[LogprobToken] = []


class OutputMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The one message of the answer."""

    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"


class ResponseError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a response could not be written to its end."""

    code: str
    message: str
    type: str
    param: str | None


class IncompleteDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Why a response is shorter than the model would have it."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class PlainText(msgspec.Struct, frozen=True, kw_only=True):
    """The format of the answer."""

    type: Literal["text"] = "text"


class ResponseText(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer is written."""

    format: PlainText = PlainText()


class ResponseObject(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; `apply` is there if it is the result of an edit. Nothing is stored."""

    id: str
    created_at: int
    completed_at: int | None
    status: ResponseStatus
    model: str
    output: list[OutputMessage]
    usage: ResponseUsage | None
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    temperature: float | None
    top_p: float | None
    object: Literal["response"] = "response"
    background: Literal[False] = False
    parallel_tool_calls: bool = False
    previous_response_id: None = None
    reasoning: ReasoningConfig = ReasoningConfig()
    service_tier: Literal["default"] = "default"
    store: Literal[False] = False
    text: ResponseText = ResponseText()
    tool_choice: Literal["none"] = "none"
    tools: list[Any] = []
    top_logprobs: int = 0
    truncation: Literal["disabled"] = "disabled"
    apply: ApplyNote | UnsetType = UNSET


class ResponseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The response changed as a whole: created, in progress, or at its end."""

    type: str
    sequence_number: int
    response: ResponseObject


class ItemEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The message began or ended."""

    type: str
    sequence_number: int
    item: OutputMessage
    output_index: int = 0


class PartEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the message began or ended."""

    type: str
    sequence_number: int
    item_id: str
    part: OutputText
    output_index: int = 0
    content_index: int = 0


class TextDeltaEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the text."""

    sequence_number: int
    item_id: str
    delta: str
    logprobs: list[LogprobToken]
    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    output_index: int = 0
    content_index: int = 0


class TextDoneEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The whole text."""

    sequence_number: int
    item_id: str
    text: str
    logprobs: list[LogprobToken]
    type: Literal["response.output_text.done"] = "response.output_text.done"
    output_index: int = 0
    content_index: int = 0
