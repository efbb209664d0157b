"""A prompt profile: the form of prompts and answers for one family of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from apply_service.prompts.answer import StreamDecoder
from apply_service.prompts.chat import ChatProfile
from apply_service.prompts.embedded import EmbeddedProfile
from apply_service.prompts.errors import AnswerFormatError, PromptError, UnknownProfileError
from apply_service.prompts.fastapply import FastApplyProfile
from apply_service.prompts.prompt import Prompt, PromptRequest
from apply_service.prompts.tokenizer import PromptTokenizer

__all__ = [
    "PROFILE_NAMES",
    "AnswerFormatError",
    "Profile",
    "Prompt",
    "PromptError",
    "PromptRequest",
    "StreamDecoder",
    "load_profile",
]


class Profile(Protocol):
    """Builds the prompts of one model. Immutable, so any thread may use it."""

    @property
    def name(self) -> str:
        """The name by which a configuration chooses it."""
        ...

    @property
    def tokenizer(self) -> PromptTokenizer:
        """The model's tokenizer."""
        ...

    @property
    def default_constraint(self) -> Literal["none", "merge"]:
        """The constraint of an answer unless a request asks for another."""
        ...

    @property
    def constraints(self) -> tuple[Literal["none", "merge"], ...]:
        """The constraints that a request may ask for."""
        ...

    @property
    def max_region_tokens(self) -> int | None:
        """Most tokens of a region's prompt, as a target; None asks for whole files."""
        ...

    def build(self, request: PromptRequest) -> Prompt:
        """The prompt of a request. Raises `TextNotEncodableError`."""
        ...


_PROFILES: dict[str, Callable[[Path], Profile]] = {
    "embedded": EmbeddedProfile.from_dir,
    "fastapply": FastApplyProfile.from_dir,
    "chat": ChatProfile.from_dir,
}
PROFILE_NAMES = tuple(_PROFILES)


def load_profile(name: str, model_dir: Path) -> Profile:
    """The profile `name` for the model in `model_dir`.

    Raises `UnknownProfileError`, `TokenizerError` or `ChatTemplateError`.
    """
    build = _PROFILES.get(name)
    if build is None:
        raise UnknownProfileError(
            f"unknown prompt profile {name!r}; choose one of {', '.join(PROFILE_NAMES)}"
        )
    return build(model_dir)
