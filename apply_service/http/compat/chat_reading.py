"""Reads the body of `/v1/chat/completions`."""

from __future__ import annotations

from typing import Any

import msgspec

from apply_service.http.compat.conversation import Conversation
from apply_service.http.compat.messages import message_of, text_of
from apply_service.http.compat.parameters import check_neutral, check_stops
from apply_service.http.compat.schemas import ChatBody

# Values of unsupported parameters that mean what is done anyway, beside null.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
}


def chat_conversation_of(body: ChatBody) -> Conversation:
    """The conversation of a body.

    Raises ProblemError (400) for content other than text and for unsupported parameters.
    """
    check_neutral(msgspec.structs.asdict(body), _NEUTRAL)
    stop = body.stop if body.stop is not None else []
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    check_stops(stops, field="stop")
    # The smaller limit holds if both names are used.
    limits = (body.max_tokens, body.max_completion_tokens)
    messages = [
        message_of(message.role, message.content, f"messages[{place}]")
        for place, message in enumerate(body.messages)
    ]
    prediction = None
    if body.prediction is not None:
        prediction = text_of(body.prediction.content, "prediction.content")
    return Conversation(
        messages=messages,
        is_streamed=bool(body.stream),
        prediction=prediction,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        seed=body.seed,
        max_tokens=min([limit for limit in limits if limit is not None], default=None),
        stops=stops,
        has_logprobs=bool(body.logprobs),
        resolve=body.resolve,
    )
