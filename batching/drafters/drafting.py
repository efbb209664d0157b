"""Asks drafters between steps: before one is planned, for requests that copying serves badly."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch

from batching.drafters.drafter import DraftAsk, Drafter, Features, ObservedRequest, RefusedRow
from batching.drafters.payoff import Payoff
from batching.guards import check_draft
from batching.request import RequestState
from batching.scheduler import Scheduler
from batching.stats import DrafterStats
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens
from lookup.proposer import MAIN, Draft

_LOGGER = logging.getLogger(__name__)

# Tokens of the longest way that drafters are asked for; they have room for keys and values.
MAX_DEPTH = 8


@dataclass(slots=True)
class _Post:
    """A drafter at work, and what it has offered to requests that a step may be computing."""

    drafter: Drafter
    payoff: Payoff = field(default_factory=Payoff)
    offered: dict[str, _Offer] = field(default_factory=dict)
    num_asks: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Offer:
    draft: Draft
    num_copied: float


class Drafting:
    """Drafters in the order in which they are asked. All methods run on the engine thread.

    A drafter that raises, or drafts what is no token, is asked no more.
    """

    def __init__(self, drafters: Sequence[Drafter], *, vocab_size: int) -> None:
        self._posts = [_Post(drafter) for drafter in drafters]
        self._vocab_size = vocab_size

    @property
    def is_active(self) -> bool:
        """True if there is a drafter that is at work."""
        return bool(self._posts)

    @property
    def taps(self) -> frozenset[int]:
        """The hidden rows that any of the drafters reads."""
        return frozenset(tap for post in self._posts for tap in post.drafter.taps)

    def stats(self) -> dict[str, DrafterStats]:
        """Figures by drafter since start."""
        return {
            post.drafter.name: DrafterStats(
                asks=post.num_asks,
                seconds=post.seconds,
                switched_off=post.payoff.num_switched_off,
            )
            for post in self._posts
        }

    @torch.inference_mode()
    def observe(
        self, plan: StepPlan, result: StepResult, features: Features, scheduler: Scheduler
    ) -> None:
        """Tell all drafters what a step computed, before it is committed."""
        observed = observed_requests(plan, result)
        for post in tuple(self._posts):
            for scheduled, verified in zip(plan.scheduled, result.verified, strict=True):
                offer = post.offered.pop(scheduled.request_id, None)
                if offer is not None and verified.token_ids:
                    post.payoff.observe(
                        scheduled.request_id,
                        num_accepted=_num_equal(offer.draft.token_ids, verified.token_ids),
                        num_copied=offer.num_copied,
                        step_ms=scheduler.plain_step_ms,
                        rows_ms=scheduler.draft_rows_ms(scheduled),
                    )
            try:
                if observed:
                    post.drafter.observe(observed, features)
            except Exception as error:  # whatever it is, requests can do without it
                self._give_up(post, error)

    @torch.inference_mode()
    def draft(self, scheduler: Scheduler) -> None:
        """Offer drafts to the requests that the next step may ask for a token."""
        if not self._posts:
            return
        states = scheduler.draftable()
        for post in tuple(self._posts):
            self._ask(post, states, scheduler)

    def forget(self, request_id: str) -> None:
        """A request has ended."""
        for post in tuple(self._posts):
            post.offered.pop(request_id, None)
            post.payoff.forget(request_id)
            try:
                post.drafter.forget(request_id)
            except Exception as error:  # as above
                self._give_up(post, error)

    def _ask(self, post: _Post, states: Sequence[RequestState], scheduler: Scheduler) -> None:
        asked: list[tuple[RequestState, DraftAsk, float]] = []
        for state in states:
            expected = scheduler.expected_tokens(state)
            if post.payoff.is_worth_asking(
                state.request.request_id,
                expected_copied=expected,
                step_ms=scheduler.plain_step_ms,
            ) and scheduler.reserve_ahead(state, MAX_DEPTH):
                asked.append((state, _ask_of(state), expected))
        if not asked:
            return
        began = time.perf_counter()
        try:
            drafts = post.drafter.draft([ask for _, ask, _ in asked])
            for (_, ask, _), draft in zip(asked, drafts, strict=True):
                if draft.token_ids:
                    check_draft(draft, ask.max_nodes, self._vocab_size)
        except Exception as error:  # as above
            self._give_up(post, error)
            return
        seconds = time.perf_counter() - began
        post.num_asks += len(asked)
        post.seconds += seconds
        post.payoff.charge(len(asked), 1e3 * seconds)
        for (state, ask, expected), draft in zip(asked, drafts, strict=True):
            post.offered[ask.request_id] = _Offer(draft, expected)
            if draft.token_ids:
                state.offer(draft)

    def _give_up(self, post: _Post, error: Exception) -> None:
        _LOGGER.error(
            "the drafter %s failed and is asked no more", post.drafter.name, exc_info=error
        )
        self._posts.remove(post)


def observed_requests(plan: StepPlan, result: StepResult) -> list[ObservedRequest]:
    """The rows of a step that hold, of those of its requests that may be drafted for."""
    starts = accumulate((one.num_all_rows for one in plan.scheduled), initial=0)
    found = (
        _observed(scheduled, verified, first_row=first)
        for scheduled, verified, first in zip(plan.scheduled, result.verified, starts, strict=False)
        if scheduled.is_observed and not verified.is_broken
    )
    return [one for one in found if one.rows]


def _observed(
    scheduled: ScheduledRequest, verified: VerifiedTokens, *, first_row: int
) -> ObservedRequest:
    num_known = len(scheduled.token_ids)
    rows = list(range(first_row, first_row + num_known))
    token_ids = list(scheduled.token_ids)
    block_ids = scheduled.block_ids
    refused: Sequence[RefusedRow] = ()
    if scheduled.draft is not None:
        draft = scheduled.draft
        stops = draft.stops(verified.branch, verified.num_accepted)
        firsts = list(
            accumulate(
                (branch.rows.num_rows for branch in scheduled.branches),
                initial=first_row + scheduled.num_rows,
            )
        )
        rows += range(first_row + num_known, first_row + num_known + stops[MAIN])
        for way in sorted(stops.keys() - {MAIN}):  # a parent comes before its branches
            num_held = stops[way] - draft.branches[way].fork
            rows += range(firsts[way], firsts[way] + num_held)
            block_ids = scheduled.branches[way].rows.block_ids
        token_ids += verified.token_ids[: verified.num_accepted]
        refused = _refused(draft, stops, first_row + num_known, firsts)
    if verified.token_ids:
        behind = [*token_ids[1:], verified.token_ids[-1]]
    else:
        behind = token_ids[1:] + (
            [] if scheduled.next_token_id is None else [scheduled.next_token_id]
        )
    return ObservedRequest(
        request_id=scheduled.request_id,
        rows=rows[: len(behind)],
        start=scheduled.start,
        token_ids=token_ids[: len(behind)],
        next_token_ids=behind,
        block_ids=block_ids,
        refused=refused,
        cache_salt=scheduled.cache_salt,
    )


def _refused(
    draft: Draft, stops: Mapping[int, int], main_row: int, branch_rows: Sequence[int]
) -> list[RefusedRow]:
    """The rows of a draft behind where its ways stop.

    main_row, branch_rows: the rows of the first tokens of the draft and of each branch
    """
    refused: list[RefusedRow] = []

    def add(way: Sequence[int], num_held: int, first: int, before: int) -> None:
        for at in range(num_held, len(way)):
            refused.append(RefusedRow(first + at, way[at], first + at - 1 if at else before))

    add(draft.token_ids, stops[MAIN], main_row, main_row - 1)
    for index, branch in enumerate(draft.branches):
        before = main_row + branch.fork - 1
        if branch.parent != MAIN:
            parent = draft.branches[branch.parent]
            before = branch_rows[branch.parent] + branch.fork - 1 - parent.fork
        num_held = stops.get(index, branch.fork) - branch.fork
        add(branch.token_ids, num_held, branch_rows[index], before)
    return refused


def _ask_of(state: RequestState) -> DraftAsk:
    max_nodes = state.max_draft_nodes
    return DraftAsk(
        request_id=state.request.request_id,
        token_ids=state.token_ids,
        num_prompt_tokens=len(state.request.prompt_token_ids),
        block_ids=state.block_ids,
        sampling=state.request.sampling,
        max_nodes=max_nodes,
        max_depth=min(MAX_DEPTH, max_nodes),
        cache_salt=state.request.cache_salt,
    )


def _num_equal(drafted: Sequence[int], written: Sequence[int]) -> int:
    for at, (one, other) in enumerate(zip(drafted, written, strict=False)):
        if one != other:
            return at
    return min(len(drafted), len(written))
