"""The wire formats of `/v1/chat/completions`, as OpenAI defines it, and of `/v1/code/apply`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from apply_service.edit.verdict.verdict import Status
from apply_service.http.schemas import ChoiceBody, ChosenId, FindingBody

FinishReason = Literal["stop", "length"]


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message; only those of type `text` can be read."""

    type: str
    text: str | None = None


class ChatMessageBody(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the conversation."""

    role: str
    content: str | list[ContentPart] | None = None


class PredictionBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer will probably be; it only makes the answer faster."""

    content: str | list[ContentPart]
    type: Literal["content"] = "content"


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream has besides the answer."""

    include_usage: bool | None = None


class ChatBody(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, or one message with an edit in it: `<code>` and `<update>`.

    Unknown fields are ignored. Those without a type here are refused unless they change nothing.
    """

    messages: Annotated[list[ChatMessageBody], Meta(min_length=1)]
    model: str | None = None
    prediction: PredictionBody | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    seed: int | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    top_logprobs: Any = None
    user: Any = None
    n: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    repetition_penalty: Any = None
    min_p: Any = None
    logit_bias: Any = None
    response_format: Any = None
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    modalities: Any = None
    audio: Any = None
    web_search_options: Any = None
    resolve: ChosenId = None


class PromptTokensDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the prompt that were not computed again."""

    cached_tokens: int


class CompletionTokensDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Drafted tokens that stand in the answer, and those that do not."""

    accepted_prediction_tokens: int
    rejected_prediction_tokens: int


class ChatUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that the model read and wrote."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class ApplyNote(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on an edit, which other APIs have no place for."""

    status: Status
    confidence: float | None
    findings: list[FindingBody]
    choices: list[ChoiceBody]


class LogprobToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token of the answer with its log-probability."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[Any] = []


class ChoiceLogprobs(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of an answer, or of a piece of it."""

    content: list[LogprobToken]
    refusal: None = None


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    content: str
    role: Literal["assistant"] = "assistant"
    refusal: None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer that a request gets."""

    message: AnswerMessage
    finish_reason: FinishReason
    index: int = 0
    logprobs: ChoiceLogprobs | None = None


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; `apply` is there if it is the result of an edit."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    system_fingerprint: str
    object: Literal["chat.completion"] = "chat.completion"
    apply: ApplyNote | UnsetType = UNSET


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a chunk adds to the answer."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a chunk; the last chunk has the reason of its end."""

    delta: Delta
    finish_reason: FinishReason | None = None
    index: int = 0
    logprobs: ChoiceLogprobs | None = None


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a streamed answer."""

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    system_fingerprint: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    usage: ChatUsage | UnsetType | None = UNSET
    apply: ApplyNote | UnsetType = UNSET


class CodeApplyBody(msgspec.Struct, frozen=True, kw_only=True):
    """One edit; each field has two names, of which one is enough. Unknown fields are ignored."""

    initial_code: Annotated[str | None, Meta(description="The whole file as it is now.")] = None
    initialCode: str | None = None  # noqa: N815
    edit_snippet: Annotated[
        str | None,
        Meta(description="Changed code, with markers such as `// ... existing code ...`."),
    ] = None
    editSnippet: str | None = None  # noqa: N815
    instruction: str | None = None
    instructions: str | None = None
    model: str | None = None
    prediction: str | None = None
    stream: bool | None = None
    resolve: ChosenId = None


class CodeApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The merged file, under both names."""

    id: str
    model: str
    mergedCode: str  # noqa: N815
    merged_code: str
    usage: ChatUsage
    system_fingerprint: str
    apply: ApplyNote
