"""A request of any of the APIs: the messages, and how its answer is to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.apply.edit_request import SamplingOptions
from apply_service.prompts.chat_template import ChatMessage

_MAX_SEED = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages without anything but text, and options; None leaves one to the server.

    `messages_field` and `logprobs_field` are the names of the two in the body, for errors.
    """

    messages: Sequence[ChatMessage]
    messages_field: str = "messages"
    is_streamed: bool = False
    prediction: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    has_logprobs: bool = False
    logprobs_field: str = "logprobs"
    resolve: str | None = None

    def sampling(self, *, temperature: float, seed: int) -> SamplingOptions:
        """The sampling of the answer; the arguments hold where the request says nothing."""
        if self.temperature is not None:
            temperature = self.temperature
        top_p = 1.0 if self.top_p is None else self.top_p
        if top_p == 0:  # nothing is left but the likeliest token
            temperature, top_p = 0.0, 1.0
        return SamplingOptions(
            temperature=temperature,
            top_p=top_p,
            top_k=max(self.top_k or 0, 0),
            seed=seed if self.seed is None else self.seed & _MAX_SEED,
        )
