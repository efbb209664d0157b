"""A request: what its owner asks for (frozen) and where it stands (written by the scheduler)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from batching.events import ReferenceStats, RequestStats
from batching.prefix_cache import PrefixChain
from lookup.proposer import Draft, Proposer


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


class RequestStatus(Enum):
    """Where a request stands in the scheduler."""

    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"
    FINISHED = "finished"


class RequestState:
    """One request inside the engine. Only the scheduler writes to it.

    `num_computed_tokens` counts the tokens of `token_ids` whose keys and values stand in the
    blocks; it runs after `num_tokens`, whatever the tokens are: prompt, output, or both again
    after a preemption.
    """

    def __init__(self, request: EngineRequest, *, chain: PrefixChain, now: float) -> None:
        self.request = request
        self.chain = chain
        self.status = RequestStatus.WAITING
        self.token_ids = list(request.prompt_token_ids)
        self.num_computed_tokens = 0
        self.block_ids: list[int] = []
        self.num_stored_blocks = 0
        self.num_cached_tokens = 0
        self.arrival = now
        self.first_scheduled: float | None = None
        self.first_token: float | None = None
        self.target_passes = 0
        self.decode_passes = 0
        self.forced = 0
        self._drafted: dict[str, int] = {}
        self._accepted: dict[str, int] = {}

    @property
    def num_tokens(self) -> int:
        """Tokens known so far: prompt and output."""
        return len(self.token_ids)

    @property
    def num_output_tokens(self) -> int:
        """Tokens written so far."""
        return len(self.token_ids) - len(self.request.prompt_token_ids)

    @property
    def num_uncomputed_tokens(self) -> int:
        """Known tokens still to be computed; at least one while the request lives."""
        return len(self.token_ids) - self.num_computed_tokens

    def propose(self, max_tokens: int) -> Draft | None:
        """A draft of at most `max_tokens` tokens that the answer's limit has room for, or None."""
        request = self.request
        room = request.sampling.max_tokens - self.num_output_tokens - 1
        num_tokens = min(max_tokens, room, request.max_draft_tokens)
        if request.proposer is None or num_tokens <= 0:
            return None
        draft = request.proposer.propose(num_tokens)
        return draft if draft.token_ids else None

    def count_draft(self, draft: Draft, num_accepted: int) -> None:
        """Add one verified draft to the counters of its reference."""
        name = draft.reference
        self._drafted[name] = self._drafted.get(name, 0) + len(draft)
        self._accepted[name] = self._accepted.get(name, 0) + num_accepted

    def stats(self, now: float) -> RequestStats:
        """The figures up to `now`, which ends the decode time."""
        started = now if self.first_scheduled is None else self.first_scheduled
        first_token = now if self.first_token is None else self.first_token
        return RequestStats(
            num_prompt_tokens=len(self.request.prompt_token_ids),
            num_cached_tokens=self.num_cached_tokens,
            num_output_tokens=self.num_output_tokens,
            drafted=sum(self._drafted.values()),
            accepted=sum(self._accepted.values()),
            forced=self.forced,
            target_passes=self.target_passes,
            decode_passes=self.decode_passes,
            queue_s=started - self.arrival,
            prefill_s=first_token - started,
            decode_s=now - first_token,
            by_reference={
                name: ReferenceStats(drafted, self._accepted[name])
                for name, drafted in self._drafted.items()
            },
        )
