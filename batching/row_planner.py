"""Plans the rows of a step: the known tokens and the draft of each request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from batching.request import RequestState
from batching.step_costs import StepCosts, StepSize
from batching.step_plan import ScheduledRequest, VerifiedTokens
from lookup.acceptance import DraftKind
from lookup.draft_budget import BranchBid, DraftBid, DraftBudget, StepTerms
from lookup.proposer import Draft

# A step with rows of prompts may take so much longer than without them, as long as somebody writes.
_CHUNK_MS = 150.0
_MIN_CHUNK = 32


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """The rows of one request in a step: its next `num_tokens` known tokens, then a draft."""

    state: RequestState
    num_tokens: int
    draft: Draft | None


class RowPlanner:
    """Shares a step's rows among known tokens and drafts.

    Every request gets one row. Known tokens and drafts each get the half of the others that they
    want, and what the other side leaves. With `costs` drafts take less than they could: only as
    many rows as bring the most expected tokens a second, where neither the rows of prompts count
    nor their time: they are to be computed anyway. What drafts leave goes to known tokens.

    Of the rows of prompts half goes to those that have least left, and half to those that came
    first, so that short ones need not wait and long ones are done in time. With `costs` prompts
    hold up those who write by no more than one chunk's time in each step.
    """

    def __init__(self, *, max_draft_tokens: int, costs: StepCosts | None) -> None:
        """Without `costs` all drafts are equally long: `max_draft_tokens`, if there is room."""
        self._max_draft_tokens = max_draft_tokens
        self._costs = costs
        self._budget = DraftBudget()

    def plan(self, states: Sequence[RequestState], *, max_rows: int) -> list[PlannedRows]:
        """The rows of all requests, best in rank first; together at most `max_rows`.

        Changes nothing but what the requests last proposed.
        """
        demands = [
            TokenDemand(state.num_uncomputed_tokens, self._longest_draft(state)) for state in states
        ]
        max_prefill = self._max_prefill(states, demands, max_rows)
        shares = share_tokens(demands, max_rows, max_prefill=max_prefill)
        drafts = self._drafts(states, demands, shares, max_rows=max_rows)
        num_known = sum(share.num_tokens for share in shares)
        num_drafted = sum(draft.num_nodes for draft in drafts if draft is not None)
        num_spare = min(max_rows - num_known - num_drafted, max_prefill - num_known + len(states))
        num_tokens = fill_up(demands, [share.num_tokens for share in shares], num_spare)
        return [PlannedRows(*rows) for rows in zip(states, num_tokens, drafts, strict=True)]

    def _max_prefill(
        self, states: Sequence[RequestState], demands: Sequence[TokenDemand], max_rows: int
    ) -> int:
        """Rows that prompts may have beside the one of each request."""
        writing = [one for one, demand in zip(states, demands, strict=True) if demand.is_written]
        if self._costs is None or not writing or len(writing) == len(states):
            return max_rows
        longest = max(state.num_computed_tokens for state in states)
        alone = StepSize(
            num_rows=len(writing),
            num_plain_rows=0,
            num_pairs=sum(state.num_tokens for state in writing),
            num_requests=len(writing),
        )
        limit_ms = self._costs.step_ms(alone) + _CHUNK_MS

        def is_short(num_rows: int) -> bool:
            size = StepSize(
                num_rows=alone.num_rows + num_rows,
                num_plain_rows=num_rows,
                num_pairs=alone.num_pairs + num_rows * (longest + num_rows),
                num_requests=len(states),
            )
            assert self._costs is not None, "checked above"
            return self._costs.step_ms(size) <= limit_ms

        candidates = range(_MIN_CHUNK, max_rows + 1, _MIN_CHUNK)
        return max(_MIN_CHUNK, *takewhile(is_short, candidates), 0)

    def observe(
        self,
        scheduled: ScheduledRequest,
        verified: VerifiedTokens,
        *,
        num_verified: int,
        num_held: int,
    ) -> None:
        """Take in how many tokens or choices of a draft were verified, and how many held.

        Those of its branches are counted here.
        """
        if scheduled.draft is None:
            return
        kind = _kind_of(scheduled.draft, is_first=scheduled.output_position == 0)
        self._budget.observe(
            kind,
            num_verified=num_verified,
            num_held=num_held,
            num_kept=verified.num_accepted,
        )
        for index, num_held_there in asked_branches(scheduled.draft, verified):
            self._budget.observe_branch(
                _kind_of_branch(scheduled.draft, index),
                num_verified=len(scheduled.draft.branches[index].token_ids),
                num_held=num_held_there,
            )

    def expected_tokens(self, state: RequestState, draft: Draft) -> float:
        """The tokens of a draft that are expected to hold."""
        return self._budget.expected_tokens(_bid_of(state, draft)) if draft.token_ids else 0.0

    def plain_step_ms(self, states: Sequence[RequestState]) -> float | None:
        """What a step with one row of each request takes, for each; None if nobody knows."""
        if self._costs is None or not states:
            return None
        return self._costs.step_ms(_plain_size(states)) / len(states)

    def draft_rows_ms(self, states: Sequence[RequestState], scheduled: ScheduledRequest) -> float:
        """What the draft of one of these requests adds to such a step; 0 if nobody knows."""
        if self._costs is None or not states:
            return 0.0
        plain = _plain_size(states)
        num_rows = scheduled.num_all_rows - len(scheduled.token_ids)
        longer = replace(
            plain,
            num_rows=plain.num_rows + num_rows,
            num_pairs=plain.num_pairs + num_rows * (scheduled.start + num_rows),
            num_requests=plain.num_requests + len(scheduled.branches),
        )
        return self._costs.step_ms(longer) - self._costs.step_ms(plain)

    def _drafts(
        self,
        states: Sequence[RequestState],
        demands: Sequence[TokenDemand],
        shares: Sequence[TokenShare],
        *,
        max_rows: int,
    ) -> list[Draft | None]:
        """A draft for each request whose known tokens end in this step, or None."""
        num_known = sum(share.num_tokens for share in shares)
        num_free = max_rows - num_known
        if self._costs is not None and _may_rest(states) and self._budget.try_rest():
            return [None] * len(states)
        drafts: list[Draft | None] = []
        for state, demand, share in zip(states, demands, shares, strict=True):
            longest = min(demand.max_draft_tokens, num_free)
            if self._costs is None:
                longest = share.max_draft_tokens
            drafts.append(state.propose(longest) if state.is_end(share.num_tokens) else None)
        drafted = {at: draft for at, draft in enumerate(drafts) if draft is not None}
        if self._costs is None or not drafted:
            return drafts
        ends = [
            (state.num_computed_tokens + share.num_tokens, state.is_end(share.num_tokens))
            for state, share in zip(states, shares, strict=True)
        ]
        verified = [context for context, is_end in ends if is_end]
        known = StepSize(
            num_rows=num_known,
            num_plain_rows=num_known - len(verified),
            num_pairs=sum(
                share.num_tokens * context for share, (context, _) in zip(shares, ends, strict=True)
            ),
            num_requests=len(states),
        )
        alone = StepSize(
            num_rows=len(verified),
            num_plain_rows=0,
            num_pairs=sum(verified),
            num_requests=len(verified),
        )
        mean_context = sum(states[at].num_tokens for at in drafted) // len(drafted)
        terms = _terms_of(known, alone, self._costs, mean_context=mean_context, max_rows=num_free)
        bids = [_bid_of(states[at], draft) for at, draft in drafted.items()]
        granted = self._budget.allocate(bids, terms)
        kept = self._budget.choose_branches(bids, granted, terms)
        for (at, draft), num_tokens, branches in zip(drafted.items(), granted, kept, strict=True):
            chain = draft.with_branches(()) if draft.branches else draft
            drafts[at] = cut = states[at].cut_draft(chain, num_tokens)
            if cut is not None and branches:
                drafts[at] = replace(cut, branches=draft.with_branches(branches).branches)
        return drafts

    def _longest_draft(self, state: RequestState) -> int:
        if state.request.proposer is None and state.constrained is None:
            return 0
        return min(state.request.max_draft_tokens, self._max_draft_tokens)


def _may_rest(states: Sequence[RequestState]) -> bool:
    """True if nobody is at the beginning of an answer or bound to merges; such drafts hold best."""
    return all(state.constrained is None and state.num_output_tokens > 0 for state in states)


def _terms_of(
    known: StepSize, alone: StepSize, costs: StepCosts, *, mean_context: int, max_rows: int
) -> StepTerms:
    """What drafts cost in a step that is `known` without them.

    `alone` is what would be left of it without the rows whose tokens nobody waits for.
    """
    alone_ms = costs.step_ms(alone)
    given_ms = costs.step_ms(known) - alone_ms

    def cost_ms(num_drafted: int) -> float:
        size = StepSize(
            num_rows=known.num_rows + num_drafted,
            num_plain_rows=known.num_plain_rows,
            num_pairs=known.num_pairs + num_drafted * mean_context,
            num_requests=known.num_requests,
        )
        # Measured costs may fall where there are more rows; a step is not for free all the same.
        return max(costs.step_ms(size) - given_ms, alone_ms / 2)

    return StepTerms(
        num_certain=alone.num_rows,
        max_draft_rows=max_rows,
        draft_row_counts=[
            count - known.num_rows for count in costs.row_counts if count > known.num_rows
        ],
        cost_ms=cost_ms,
        branch_ms=costs.rates.request_ms,
    )


def _plain_size(states: Sequence[RequestState]) -> StepSize:
    """A step with one row of each request."""
    return StepSize(
        num_rows=len(states),
        num_plain_rows=0,
        num_pairs=sum(state.num_tokens for state in states),
        num_requests=len(states),
    )


def _bid_of(state: RequestState, draft: Draft) -> DraftBid:
    kind = _kind_of(draft, is_first=state.num_output_tokens == 0)
    branches = tuple(
        BranchBid(_kind_of_branch(draft, index), branch.fork, len(branch.token_ids), branch.parent)
        for index, branch in enumerate(draft.branches)
    )
    return DraftBid(kind, len(draft), state.choice_offsets, branches)


def asked_branches(draft: Draft, verified: VerifiedTokens) -> Iterator[tuple[int, int]]:
    """The branches at whose fork the model left their parent, and how many of their tokens held."""
    stops = draft.stops(verified.branch, verified.num_accepted)
    for index, branch in enumerate(draft.branches):
        if stops.get(branch.parent) == branch.fork:
            yield index, stops.get(index, branch.fork) - branch.fork


def _kind_of_branch(draft: Draft, index: int) -> DraftKind:
    return DraftKind(draft.branches[index].reference, index)


def _kind_of(draft: Draft, *, is_first: bool) -> DraftKind:
    return DraftKind.of(draft.reference, draft.match_length, is_first=is_first)


@dataclass(frozen=True, slots=True)
class TokenDemand:
    """The demand of one running request: uncomputed tokens (at least 1) and its longest draft."""

    num_uncomputed_tokens: int
    max_draft_tokens: int

    @property
    def is_written(self) -> bool:
        """True if nothing but the newest token is to be computed: the answer is being written."""
        return self.num_uncomputed_tokens == 1


@dataclass(frozen=True, slots=True)
class TokenShare:
    """The share of one request. Drafts are granted only if all known tokens are computed."""

    num_tokens: int
    max_draft_tokens: int


def share_tokens(
    demands: Sequence[TokenDemand], budget: int, *, max_prefill: int | None = None
) -> list[TokenShare]:
    """One share for each demand, in their order; the rows granted never exceed `budget`.

    Each request gets one row. The rest is split between prefills (half of it to those with least
    left, half to the first) and drafts (evenly): either may use what the other leaves, and neither
    gets less than half while it wants it, but prefills no more than `max_prefill`. `budget` must be
    at least the number of demands.
    """
    spare = budget - len(demands)
    prefill_demand = sum(demand.num_uncomputed_tokens - 1 for demand in demands)
    draft_demand = sum(
        demand.max_draft_tokens for demand in demands if demand.num_uncomputed_tokens == 1
    )
    prefill_left = min(prefill_demand, max(spare // 2, spare - draft_demand))
    if max_prefill is not None:
        prefill_left = min(prefill_left, max_prefill)
    draft_left = spare - prefill_left
    num_tokens = [1] * len(demands)
    shortest = sorted(range(len(demands)), key=lambda at: demands[at].num_uncomputed_tokens)
    left = _grant(num_tokens, demands, shortest, prefill_left // 2)
    _grant(num_tokens, demands, range(len(demands)), prefill_left - prefill_left // 2 + left)
    wanted_drafts = [
        demand.max_draft_tokens if granted == demand.num_uncomputed_tokens else 0
        for granted, demand in zip(num_tokens, demands, strict=True)
    ]
    drafts = _share_evenly(wanted_drafts, draft_left)
    return [TokenShare(*share) for share in zip(num_tokens, drafts, strict=True)]


def _grant(
    num_tokens: list[int], demands: Sequence[TokenDemand], order: Iterable[int], num_rows: int
) -> int:
    """Add rows to what demands have, each as much as it wants; the number that is left."""
    for at in order:
        extra = min(demands[at].num_uncomputed_tokens - num_tokens[at], num_rows)
        num_tokens[at] += extra
        num_rows -= extra
    return num_rows


def fill_up(demands: Sequence[TokenDemand], num_tokens: Sequence[int], num_spare: int) -> list[int]:
    """`num_tokens` of each demand, and more for the first whose gap is still open.

    They may have the `num_spare` rows that nobody took.
    """
    filled = list(num_tokens)
    _grant(filled, demands, range(len(demands)), num_spare)
    return filled


def _share_evenly(wanted: Sequence[int], available: int) -> list[int]:
    """As much as is wanted, or the same for all who want more than there is for each."""
    shares = [0] * len(wanted)
    # The least demanding come first: what they leave is split among the others.
    by_demand = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for num_served, index in enumerate(by_demand):
        shares[index] = min(wanted[index], available // (len(wanted) - num_served))
        available -= shares[index]
    return shares
