"""One step as values: the scheduler's plan and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from batching.constrained_answer import LogitsRow
from batching.events import RowEvidence, TokenLogprob
from batching.request import SamplingParams
from lookup.proposer import MAIN, Draft


@dataclass(frozen=True, slots=True)
class ScheduledBranch:
    """A branch of a draft as a request of its own, whose first token is taken as known.

    `fork` and `parent` are those of the branch. `rows` has blocks of its own from that on in which
    its first token stands.
    """

    fork: int
    parent: int
    rows: ScheduledRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRequest:
    """One request's rows in a step.

    `token_ids` stand at positions `start`, `start + 1`, …; behind them come the tokens of `draft`.
    With `has_logits` the last of `token_ids` and every draft token get a row of logits: the token
    that they lead to is output position `output_position` and following. A request with a
    constraint lists its rows instead, and `has_logits` says whether there are any.
    `output_position` is that of the token behind the last of `token_ids`, whatever has logits.
    If the draft is a tree, its `branches` have rows of their own behind these. What a request that
    `is_observed` computes is shown to drafters; `next_token_id` is the known token behind
    `token_ids`, if there is one, and `cache_salt` whose text it is.
    """

    request_id: str
    token_ids: tuple[int, ...]
    start: int
    block_ids: Sequence[int]
    draft: Draft | None
    has_logits: bool
    output_position: int
    sampling: SamplingParams
    constrained_rows: tuple[LogitsRow, ...] | None = None
    branches: tuple[ScheduledBranch, ...] = ()
    is_observed: bool = False
    next_token_id: int | None = None
    cache_salt: bytes = b""

    @property
    def draft_token_ids(self) -> tuple[int, ...]:
        """Token ids of the draft, if there is one."""
        return self.draft.token_ids if self.draft else ()

    @property
    def num_rows(self) -> int:
        """Rows of this request in the forward pass, those of branches left out."""
        return len(self.token_ids) + len(self.draft_token_ids)

    @property
    def num_all_rows(self) -> int:
        """Rows of this request and of its branches."""
        return self.num_rows + sum(branch.rows.num_rows for branch in self.branches)

    @property
    def num_logits_rows(self) -> int:
        """Rows with logits."""
        if self.constrained_rows is not None:
            return len(self.constrained_rows)
        return 1 + len(self.draft_token_ids) if self.has_logits else 0

    @property
    def logits_rows(self) -> tuple[LogitsRow, ...]:
        """The rows with logits, in order; an empty list of allowed tokens allows all."""
        if self.constrained_rows is not None:
            return self.constrained_rows
        if not self.has_logits:
            return ()
        last = self.start + len(self.token_ids) - 1
        return tuple(
            LogitsRow(last + offset, (), known)
            for offset, known in enumerate((*self.draft_token_ids, None))
        )

    def output_position_of(self, row: LogitsRow) -> int:
        """The output position of the token that a row leads to."""
        return row.position - self.start - len(self.token_ids) + 1 + self.output_position


@dataclass(frozen=True)
class StepPlan:
    """Requests of a step in the order of their packed rows.

    is_paced: whether its time decides how large the next steps of batch requests are
    """

    scheduled: tuple[ScheduledRequest, ...]
    is_paced: bool = False

    @cached_property
    def entries(self) -> tuple[ScheduledRequest, ...]:
        """What the forward pass takes for requests: each of them, its branches behind it."""
        if not any(one.branches for one in self.scheduled):
            return self.scheduled
        return tuple(
            entry
            for one in self.scheduled
            for entry in (one, *(branch.rows for branch in one.branches))
        )

    @cached_property
    def num_tokens(self) -> int:
        """Rows in the forward pass."""
        return sum(entry.num_rows for entry in self.entries)

    @cached_property
    def num_known_tokens(self) -> int:
        """Rows of tokens that were known before the step, drafts left out."""
        return sum(len(scheduled.token_ids) for scheduled in self.scheduled)


@dataclass(frozen=True, slots=True)
class VerifiedTokens:
    """Verified tokens of one request: accepted draft tokens, then one token of the target.

    `token_ids` has `num_accepted + 1` entries, or none where there were no logits or nothing but
    evidence for tokens that were known already. An entry `is_broken` if the model's numbers were
    none (NaN or infinity) where the request would have gone on. `branch` is the index of the branch
    in which accepted tokens of a tree end.
    """

    token_ids: tuple[int, ...] = ()
    num_accepted: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    evidence: tuple[RowEvidence, ...] = ()
    is_broken: bool = False
    branch: int = MAIN


@dataclass(frozen=True, slots=True)
class StepResult:
    """The outcome of a step, one entry for each scheduled request, in the plan's order."""

    verified: tuple[VerifiedTokens, ...]
