"""A request: what its owner asks for (frozen) and where it stands (written by the scheduler)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Protocol

from batching.events import RequestStats, ReferenceStats
from lookup.proposer import Proposer


class Priority(IntEnum):
    """Scheduling class; lower runs first."""

    INTERACTIVE = 0
    BATCH = 1


class StopChecker(Protocol):
    """Finds stop conditions that need text, such as stop strings. Owned by the engine thread."""

    def push(self, token_ids: Sequence[int]) -> int | None:
        """Take new output tokens; the number of them to keep if a stop is complete, else None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the answer is drawn. `temperature` 0 is greedy; `top_k` 0 and `top_p` 1 filter nothing.

    The token at output position i is a function of the logits, `seed` and i alone.
    """

    max_tokens: int
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    stop_token_ids: frozenset[int] = frozenset()
    has_logprobs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """What crosses into the engine thread.

    `deadline` is on the clock of `time.monotonic`. `cache_salt` separates tenants in the prefix
    cache. `proposer` None, or `max_draft_tokens` 0, turns speculation off.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams
    proposer: Proposer | None = None
    max_draft_tokens: int = 64
    priority: Priority = Priority.INTERACTIVE
    deadline: float | None = None
    cache_salt: bytes = b""
    stop_checker: StopChecker | None = None
