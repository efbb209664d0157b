"""One timed generation, ours or a rival's, and what a rival is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from batching.events import RequestStats


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRun:
    """What was written and how long it took, from submission to the last token.

    `stats` are the engine's own figures; a rival has none.
    """

    token_ids: tuple[int, ...]
    seconds: float
    stats: RequestStats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalRequest:
    """A greedy generation; with `num_lookup_tokens`, prompt lookup with drafts of that length."""

    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    stop_token_ids: tuple[int, ...]
    num_lookup_tokens: int | None = None
