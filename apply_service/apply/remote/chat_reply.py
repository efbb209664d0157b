"""Reads the first answer of a chat, whatever the server sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec

# What decoding raises; the last for texts that are nested too deeply.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# Larger integers are not the same in all readers of JSON.
_MAX_COUNT = 2**53


class ChatMessage(msgspec.Struct):
    """A message of a server."""

    content: str | None = None


class ChatChoice(msgspec.Struct):
    """One answer of a server; `finish_reason` "length" is an answer that was cut."""

    message: ChatMessage
    logprobs: Any = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """The tokens of prompt and answer."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @classmethod
    def of(cls, said: Any, body: Mapping[str, Any]) -> Self:
        """What a server counts, and no more than a request with this body can have taken.

        A token is a byte of the messages at least; what is no number of tokens counts as 0.
        """
        max_output = body.get("max_tokens", body.get("max_completion_tokens", 0))
        return cls(
            _believed(said, "prompt_tokens", len(msgspec.json.encode(body["messages"]))),
            _believed(said, "completion_tokens", max_output),
        )


def _believed(said: Any, name: str, limit: int) -> int:
    value = said.get(name) if isinstance(said, dict) else None
    return min(value, limit) if type(value) is int and 0 <= value <= _MAX_COUNT else 0


class _Reply(msgspec.Struct):
    choices: list[ChatChoice]
    usage: Any = None


_DECODER = msgspec.json.Decoder(_Reply)


def read_chat(payload: bytes) -> tuple[ChatChoice, Any] | None:
    """The first answer of a chat and what its usage is said to be; None if it is something else."""
    try:
        reply = _DECODER.decode(payload)
    except UNREADABLE:
        return None
    return (reply.choices[0], reply.usage) if reply.choices else None
