"""Reads the body of `/v1/responses`."""

from __future__ import annotations

from typing import Any

import msgspec

from apply_service.http.compat.conversation import Conversation
from apply_service.http.compat.messages import message_of, unreadable
from apply_service.http.compat.parameters import check_neutral
from apply_service.http.compat.responses.schemas import InputItem, ResponsesBody
from apply_service.prompts.chat_template import ChatMessage
from apply_service.shown_text import shortened

LOGPROBS = "message.output_text.logprobs"
_PART_TYPES = ("input_text", "output_text")

# Values of unsupported parameters that mean what is done anyway, beside null.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "text.format": ({"type": "text"},),
    "text.verbosity": ("medium",),
    "reasoning.effort": ("none",),
    "reasoning.summary": ("auto",),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "previous_response_id": (),
    "conversation": (),
    "background": (False,),
    "prompt": (),
    "moderation": (),
    "context_management": ([],),
}


def responses_conversation_of(body: ResponsesBody) -> Conversation:
    """The conversation of a body; nothing is known of earlier ones.

    Raises ProblemError (400) for input other than text and for unsupported parameters.
    """
    values = msgspec.structs.asdict(body)
    for name in ("text", "reasoning"):
        inner = getattr(body, name)
        for member in (key for key in _NEUTRAL if key.startswith(f"{name}.")):
            values[member] = inner and getattr(inner, member.removeprefix(f"{name}."))
    check_neutral(values, _NEUTRAL)
    if isinstance(body.input, str):
        messages = [ChatMessage("user", body.input)]
    else:
        messages = [_message_of(item, place) for place, item in enumerate(body.input)]
    if body.instructions:
        messages.insert(0, ChatMessage("system", body.instructions))
    return Conversation(
        messages=messages,
        messages_field="input",
        is_streamed=bool(body.stream),
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=body.max_output_tokens,
        has_logprobs=LOGPROBS in (body.include or ()),
        logprobs_field="include",
        resolve=body.resolve,
    )


def _message_of(item: InputItem, place: int) -> ChatMessage:
    field = f"input[{place}]"
    if item.type not in (None, "message"):
        raise unreadable(f"{field}.type", f"the type is {shortened(item.type)!r}", ["message"])
    return message_of(item.role, item.content, field, part_types=_PART_TYPES)
