"""The wire format of `/v1/messages`, as Anthropic defines it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from apply_service.http.compat.schemas import ApplyNote, ChatMessageBody, ContentPart
from apply_service.http.schemas import ChosenId

StopReason = Literal["end_turn", "max_tokens", "stop_sequence"]


class MessagesBody(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, or one message with an edit in it: `<code>` and `<update>`.

    Unknown fields are ignored. Those without a type here are refused unless they change nothing.
    """

    messages: Annotated[list[ChatMessageBody], Meta(min_length=1)]
    system: str | list[ContentPart] | None = None
    model: str | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    stop_sequences: list[str] | None = None
    tools: Any = None
    tool_choice: Any = None
    thinking: Any = None
    output_config: Any = None
    output_format: Any = None
    mcp_servers: Any = None
    container: Any = None
    context_management: Any = None
    resolve: ChosenId = None


class MessageUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that the model read and wrote; those from the prefix cache are counted apart."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class TextBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the answer."""

    text: str
    type: Literal["text"] = "text"
    citations: None = None


class AnthropicMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; `apply` is there if it is the result of an edit."""

    id: str
    model: str
    content: list[TextBlock]
    usage: MessageUsage
    stop_reason: StopReason | None
    stop_sequence: str | None = None
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    apply: ApplyNote | UnsetType = UNSET


class MessageStart(msgspec.Struct, frozen=True, kw_only=True):
    """The message without its text."""

    message: AnthropicMessage
    type: Literal["message_start"] = "message_start"


class BlockStart(msgspec.Struct, frozen=True, kw_only=True):
    """The text begins."""

    content_block: TextBlock = TextBlock(text="")
    type: Literal["content_block_start"] = "content_block_start"
    index: int = 0


class TextDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the text."""

    text: str
    type: Literal["text_delta"] = "text_delta"


class BlockDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the one block."""

    delta: TextDelta
    type: Literal["content_block_delta"] = "content_block_delta"
    index: int = 0


class BlockStop(msgspec.Struct, frozen=True, kw_only=True):
    """The text is whole."""

    type: Literal["content_block_stop"] = "content_block_stop"
    index: int = 0


class StopDelta(msgspec.Struct, frozen=True, kw_only=True):
    """Why the message ended."""

    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the message, with the verdict of an edit."""

    delta: StopDelta
    usage: MessageUsage
    type: Literal["message_delta"] = "message_delta"
    apply: ApplyNote | UnsetType = UNSET


class MessageStop(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing more comes."""

    type: Literal["message_stop"] = "message_stop"
