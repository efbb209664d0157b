"""How the model's answers came about, as text: what each step wrote, and what was rejected."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batching.events import TokenOrigin, TracedStep

if TYPE_CHECKING:  # tokenizers are only there where a model is
    from apply_service.prompts.tokenizer import PromptTokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStep:
    """A step as text: pieces with their origins, and the pieces of its draft that did not hold.

    at_s: seconds since the engine was sent the first request of the edit; drafter: what the draft
    was copied from
    """

    at_s: float
    drafter: str | None
    tokens: tuple[tuple[str, TokenOrigin], ...]
    rejected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionTrace:
    """The steps of one region; `index` is that of the events of its answer."""

    index: int
    steps: tuple[TextStep, ...]


def text_steps(
    steps: Sequence[TracedStep], tokenizer: PromptTokenizer, *, asked_s: float = 0.0
) -> tuple[TextStep, ...]:
    """Steps with a piece of text for each token, of a request that was sent at `asked_s`.

    A character of several tokens is part of the last of them. Control tokens are spelled out.
    """
    written = codecs.getincrementaldecoder("utf-8")("replace")

    def piece(token_id: int) -> str:
        return written.decode(tokenizer.decode_bytes((token_id,)))

    return tuple(
        TextStep(
            at_s=asked_s + step.at_s,
            drafter=step.reference,
            tokens=tuple(zip(map(piece, step.token_ids), step.origins, strict=True)),
            rejected=tuple(
                tokenizer.decode_bytes((token_id,)).decode("utf-8", "replace")
                for token_id in step.rejected_token_ids
            ),
        )
        for step in steps
    )
