"""One timed generation, ours or a rival's, and what a rival is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from batching.events import RequestStats


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRun:
    """The tokens of one generation and its seconds, from submission to the last token.

    The first `num_first_tokens` came together after `first_token_s`; None if that is not known.
    `stats` are the engine's own figures; a rival has none. `status` and `is_exact`, whether the
    file is what was expected, are told by contenders that answer with a file and a verdict.
    """

    token_ids: tuple[int, ...]
    seconds: float
    first_token_s: float | None = None
    num_first_tokens: int = 0
    stats: RequestStats | None = None
    status: str | None = None
    is_exact: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalRequest:
    """A greedy generation; with `num_lookup_tokens`, prompt lookup with drafts of that length."""

    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    stop_token_ids: tuple[int, ...]
    num_lookup_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """Facts that a contender's process sends when it is ready."""

    dtype: str
    versions: dict[str, str | None]
    max_position: int | None = None
