"""A request: its parameters (frozen) and its state (written by the scheduler)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from batching.constrained_answer import CONSTRAINT_REFERENCE, ConstrainedAnswer
from batching.draft_losses import LossCounter
from batching.events import FinishReason, ReferenceStats, RequestStats, RowEvidence, TracedStep
from batching.guards import GuardedConstraint, GuardedProposer
from batching.recipes import EditDrafts, Merges, StopTexts, TokenText
from lookup.constraint import Constraint
from lookup.draft_tree import merge_drafts
from lookup.edit_proposer import BRANCH_TOKENS
from lookup.proposer import EMPTY_DRAFT, MAIN, Draft, Proposer

if TYPE_CHECKING:  # they bring all tiers, and with them the network
    from batching.cache.prefix_cache import PrefixChain
    from batching.cache.prefix_load import PrefixLoad
    from batching.step_plan import VerifiedTokens


Acceptance = Literal["exact", "typical", "adaptive", "top-n"]


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

    The token at output position i is a function of the logits, `seed` and i alone, unless another
    `acceptance` than "exact" lets drafts pass (`kernels.lossy_verify`). A constraint knows none.
    """

    max_tokens: int
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    stop_token_ids: frozenset[int] = frozenset()
    has_logprobs: bool = False
    acceptance: Acceptance = "exact"


PromptKind = Literal["edit", "chat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """A request as it is handed to the engine thread.

    `deadline` is on the clock of `time.monotonic`. `cache_salt` separates tenants in the prefix
    cache. `proposer` None, or `max_draft_tokens` 0, turns speculation off. A `constraint` drafts
    for itself, so it goes without a proposer, and it knows its own end: no `stop_checker` either.
    All three may be given as recipes; only so can a request go to another process. If it
    `is_traced`, its last event says what each step wrote. `prompt_kind` is for figures alone.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams
    proposer: Proposer | EditDrafts | None = None
    max_draft_tokens: int = 64
    priority: Priority = Priority.INTERACTIVE
    deadline: float | None = None
    cache_salt: bytes = b""
    stop_checker: StopChecker | StopTexts | None = None
    constraint: Constraint[Any] | Merges | None = None
    is_traced: bool = False
    prompt_kind: PromptKind = "edit"


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

    def __init__(
        self,
        request: EngineRequest,
        *,
        chain: PrefixChain,
        now: float,
        vocab_size: int | None = None,
        tokens: TokenText | None = None,
    ) -> None:
        self.request = request
        self.chain = chain
        self.status = RequestStatus.WAITING
        self.token_ids = list(request.prompt_token_ids)
        self.num_computed_tokens = 0
        self.block_ids: list[int] = []
        self.branch_block_ids: list[int] = []  # what branches of its draft hold besides, in a step
        self.num_stored_blocks = 0
        self.num_cached_tokens = 0
        self.num_offered_chunks = 0
        self.is_in_flight = False  # a step that is under way computes rows of it
        self.is_asked = False  # and will write tokens of its answer
        self.is_withdrawn = False  # its owner does not want it, but a step is under way
        self.load: PrefixLoad | None = None
        self.load_began: float | None = None
        self.load_ended: float | None = None
        self.arrival = now
        self.first_scheduled: float | None = None
        self.first_token: float | None = None
        self.last_token: float | None = None
        self.target_passes = 0
        self.decode_passes = 0
        self.prefill_share_s = 0.0
        self.decode_share_s = 0.0
        self.forced = 0
        self.unpublished: list[int] = []
        self.evidence: list[RowEvidence] = []
        self.constrained = (
            None
            if request.constraint is None
            else ConstrainedAnswer(
                GuardedConstraint(request.constraint, request.request_id, tokens),
                num_prompt_tokens=len(request.prompt_token_ids),
                looks_ahead=request.max_draft_tokens > 0,
            )
        )
        self._stop_checker = (
            request.stop_checker.make(tokens)
            if isinstance(request.stop_checker, StopTexts)
            else request.stop_checker
        )
        self.losses = LossCounter(request.max_draft_tokens)
        self.trace: list[TracedStep] | None = [] if request.is_traced else None
        self._proposer = (
            None
            if request.proposer is None
            else GuardedProposer(request.proposer, request.request_id, vocab_size=vocab_size)
        )
        self._building: Iterator[None] | None = None
        self._next_draft: Draft | None = None
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
    def is_answer_complete(self) -> bool:
        """True if a constraint has brought the answer to its end."""
        return self.constrained is not None and self.constrained.is_complete

    @property
    def num_wanted_tokens(self) -> int:
        """Leading tokens whose keys and values are needed: all, or less of a complete answer."""
        return self.num_tokens if self.constrained is None else self.constrained.num_wanted_tokens

    @property
    def num_prefix_tokens(self) -> int:
        """Leading tokens that may come from the cache; one token at least is left to compute."""
        first_row = None if self.constrained is None else self.constrained.first_row
        return self.num_wanted_tokens if first_row is None else first_row + 1

    @property
    def is_loading(self) -> bool:
        """True if lower tiers are being searched for the prompt's beginning."""
        return self.load is not None and not self.load.is_done

    @property
    def num_uncomputed_tokens(self) -> int:
        """Known tokens without keys and values yet; at least one while the request lives."""
        return self.num_wanted_tokens - self.num_computed_tokens

    @property
    def choice_offsets(self) -> tuple[int, ...] | None:
        """Offsets in the last draft that the model may refuse; None if it may refuse any."""
        return None if self.constrained is None else self.constrained.choice_offsets

    def is_end(self, num_tokens: int) -> bool:
        """True if the next `num_tokens` to compute end what is known of an unfinished answer."""
        is_last = self.num_computed_tokens + num_tokens == self.num_tokens
        return is_last and not self.is_answer_complete

    def prepare(self, max_tokens: int, *, may_draft: bool) -> Iterator[None]:
        """Let the proposer index, piece by piece; then draft ahead what `propose` will be asked.

        No draft may be made for a request that a step is asking about. Constraints draft when they
        are asked.
        """
        proposer = self._proposer
        if proposer is None:
            return
        yield from self._begin_building(proposer)
        if may_draft and self._next_draft is None and self._limit_draft(max_tokens) > 0:
            self.look_ahead(max_tokens)
            yield

    def look_ahead(self, max_tokens: int) -> Draft | None:
        """What the proposer drafts next, as `propose` would have it; kept for that."""
        num_tokens = self._limit_draft(max_tokens)
        if self._next_draft is None and self._proposer is not None and num_tokens > 0:
            self._begin_building(self._proposer)
            self._next_draft = self._proposer.propose(num_tokens)
        return self._next_draft

    def offer(self, draft: Draft) -> None:
        """Take another draft for what comes next; what can be copied is a branch beside it."""
        copied = self._next_draft
        merged = draft if copied is None else merge_drafts(draft, copied)
        self._next_draft = merged.with_short_branches(BRANCH_TOKENS)

    def _begin_building(self, proposer: GuardedProposer) -> Iterator[None]:
        """What is left of the proposer's indexing."""
        if self._building is None:
            self._building = proposer.build()
        return self._building

    def propose(self, max_tokens: int) -> Draft | None:
        """A draft of at most `max_tokens` nodes that the answer's limit has room for, or None."""
        num_tokens = self._limit_draft(max_tokens)
        if self.constrained is not None:
            return self.constrained.draft(num_tokens)
        proposer = self._proposer
        if proposer is None or num_tokens <= 0:
            self.losses.note_proposal(num_asked=0, num_proposed=0)
            return None
        draft = (self.look_ahead(max_tokens) or EMPTY_DRAFT).cut(num_tokens)
        self.losses.note_proposal(num_asked=num_tokens, num_proposed=draft.num_nodes)
        return draft if draft.token_ids else None

    @property
    def may_be_drafted(self) -> bool:
        """True if drafts of others than its constraint are welcome."""
        return self.constrained is None and self._proposer is not None

    @property
    def max_draft_nodes(self) -> int:
        """The longest draft that the request and its answer's limit have room for."""
        return self._limit_draft(self.request.max_draft_tokens)

    def _limit_draft(self, max_tokens: int) -> int:
        room = self.request.sampling.max_tokens - self.num_output_tokens - 1
        return min(max_tokens, room, self.request.max_draft_tokens)

    def take_forced(self) -> tuple[int, ...]:
        """Write the tokens that the constraint forces, within the answer's limit."""
        token_ids: tuple[int, ...] = ()
        if self.constrained is not None:
            room = self.request.sampling.max_tokens - self.num_output_tokens
            token_ids = tuple(self.constrained.take_forced(room))
            self.token_ids += token_ids
            self.unpublished += token_ids
            self.forced += len(token_ids)
        return token_ids

    def find_end(self, token_ids: Sequence[int]) -> tuple[int, FinishReason | None]:
        """The number of new tokens to keep, and the finish reason if the answer ends there.

        A stop token is kept as the last token of the answer.
        """
        room = self.request.sampling.max_tokens - self.num_output_tokens
        num_kept = min(len(token_ids), room)
        reason: FinishReason | None = "length" if len(token_ids) >= room else None
        stops = self.request.sampling.stop_token_ids
        if not stops.isdisjoint(token_ids):
            place = next(at for at, token_id in enumerate(token_ids) if token_id in stops)
            if place < num_kept:
                num_kept, reason = place + 1, "stop"
        if self._stop_checker is not None:
            num_before_stop = self._stop_checker.push(token_ids[:num_kept])
            if num_before_stop is not None:
                num_kept, reason = num_before_stop, "stop"
        return num_kept, reason

    def write(
        self, token_ids: Sequence[int], draft: Draft | None, verified: VerifiedTokens
    ) -> tuple[int, int]:
        """Append tokens that the model confirmed or chose, and count the draft they came from.

        Returns how many tokens of the draft (with a constraint: choices) it was asked about, and
        how many of them held; branches are left out.
        """
        self._next_draft = None
        self.token_ids += token_ids
        self.num_computed_tokens = min(self.num_computed_tokens, self.num_tokens)
        if self.constrained is not None:
            guessed = self.constrained.commit(token_ids)
            self._count_constrained(guessed, len(token_ids))
            return guessed
        if self._proposer is not None:
            self._proposer.commit(token_ids)
        if draft is None:
            return 0, 0
        self._count_draft(draft.reference, draft.num_nodes, verified.num_accepted)
        return len(draft), draft.stops(verified.branch, verified.num_accepted)[MAIN]

    def charge(self, seconds: float) -> None:
        """Add the request's share of a step's seconds."""
        if self.first_token is None:
            self.prefill_share_s += seconds
        else:
            self.decode_share_s += seconds

    def take_unpublished(self) -> tuple[int, ...]:
        """Return the tokens that no event has published yet, and mark them as published."""
        token_ids = tuple(self.unpublished)
        self.unpublished.clear()
        return token_ids

    def cut_draft(self, draft: Draft, max_tokens: int) -> Draft | None:
        """The same draft with at most `max_tokens` nodes; None if nothing is left of it."""
        if self.constrained is not None:
            return self.constrained.cut_draft(max(max_tokens, 0))
        return draft.cut(max_tokens) if max_tokens > 0 else None

    def _count_constrained(self, num_guessed: tuple[int, int], num_written: int) -> None:
        """Guessed decisions are drafts; all tokens beside decisions were forced."""
        drafted, accepted = num_guessed
        if drafted:
            self._count_draft(CONSTRAINT_REFERENCE, drafted, accepted)
        self.forced += max(0, num_written - max(drafted, 1))

    def _count_draft(self, reference: str, drafted: int, accepted: int) -> None:
        self._drafted[reference] = self._drafted.get(reference, 0) + drafted
        self._accepted[reference] = self._accepted.get(reference, 0) + accepted

    def stats(self, now: float) -> RequestStats:
        """The figures up to `now`, which ends the decode time."""
        started = now if self.first_scheduled is None else self.first_scheduled
        first_token = now if self.first_token is None else self.first_token
        load_began = now if self.load_began is None else self.load_began
        load_ended = now if self.load_ended is None else self.load_ended
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
            load_s=0.0 if self.load is None else load_ended - load_began,
            prefill_s=first_token - started,
            decode_s=now - first_token,
            prefill_share_s=self.prefill_share_s,
            decode_share_s=self.decode_share_s,
            by_reference={
                name: ReferenceStats(drafted, self._accepted[name])
                for name, drafted in self._drafted.items()
            },
            prefix_lookups=() if self.load is None else tuple(self.load.lookups),
            losses=self.losses.losses,
        )
