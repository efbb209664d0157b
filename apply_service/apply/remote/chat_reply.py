"""Reads the first answer of a chat, whatever the server sent."""

from __future__ import annotations

from typing import Any

import msgspec

# What decoding raises; the last for texts that are nested too deeply.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ChatMessage(msgspec.Struct):
    """A message of a server."""

    content: str | None = None


class ChatChoice(msgspec.Struct):
    """One answer of a server; `finish_reason` "length" is an answer that was cut."""

    message: ChatMessage
    logprobs: Any = None
    finish_reason: str | None = None


class ChatUsage(msgspec.Struct):
    """The tokens of prompt and answer, as the server counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Reply(msgspec.Struct):
    choices: list[ChatChoice]
    usage: ChatUsage | None = None


_DECODER = msgspec.json.Decoder(_Reply)


def read_chat(payload: bytes) -> tuple[ChatChoice, ChatUsage] | None:
    """The first answer of a chat with its tokens; None if that is something else."""
    try:
        reply = _DECODER.decode(payload)
    except UNREADABLE:
        return None
    return (reply.choices[0], reply.usage or ChatUsage()) if reply.choices else None
