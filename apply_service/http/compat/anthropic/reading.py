"""Reads the body of `/v1/messages`."""

from __future__ import annotations

from typing import Any

import msgspec

from apply_service.http.compat.anthropic.schemas import MessagesBody
from apply_service.http.compat.conversation import Conversation
from apply_service.http.compat.messages import message_of, text_of
from apply_service.http.compat.parameters import check_neutral, check_stops, refuse_parameter
from apply_service.prompts.chat_template import ChatMessage

# Values of unsupported parameters that mean what is done anyway, beside null.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "tools": ([],),
    "tool_choice": ({"type": "none"}, {"type": "auto"}),
    "thinking": ({"type": "disabled"},),
    "output_config": ({},),
    "output_format": (),
    "mcp_servers": ([],),
    "container": (),
    "context_management": ({},),
}


def messages_conversation_of(body: MessagesBody) -> Conversation:
    """The conversation of a body.

    Raises ProblemError (400) for content other than text and for unsupported parameters.
    """
    check_neutral(msgspec.structs.asdict(body), _NEUTRAL)
    stops = tuple(body.stop_sequences or ())
    check_stops(stops, field="stop_sequences")
    messages = [
        message_of(message.role, message.content, f"messages[{place}]")
        for place, message in enumerate(body.messages)
    ]
    if messages[-1].role == "assistant":
        refuse_parameter(
            f"messages[{len(messages) - 1}]",
            "the last message is the assistant's; this server does not go on with an answer",
            "send a message of the user last",
        )
    system = text_of(body.system, "system")
    if system:
        messages.insert(0, ChatMessage("system", system))
    return Conversation(
        messages=messages,
        is_streamed=bool(body.stream),
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        max_tokens=body.max_tokens,
        stops=stops,
        resolve=body.resolve,
    )
