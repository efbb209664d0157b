"""Decides how many rows of a step go to drafts, and to which ones, for the most tokens a second.

`DraftAccount` keeps what drafts have cost and brought lately, so that guesses about them cannot
lose much time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lookup.acceptance import AcceptanceCounters, DraftKind
from lookup.proposer import MAIN

# Share of the time that may be spent on drafts that do not pay, to see whether they would again.
PROBE_SHARE = 0.01
PROBE_TOKENS = 2
# What is assumed of a token of a branch, given that the model left its parent there.
PRIOR_BRANCH_ACCEPTANCE = 0.6
# While nothing but probes is granted and none holds, nobody need be asked in every step; after so
# many they are again.
_MAX_REST = 8
# Bounds of the balance. What was gained long ago does not pay for losses now, and a workload that
# has become good again need not make up for a whole day.
_MOST, _LEAST = 1.0, -1.0


class DraftAccount:
    """A balance in steps: tokens that held, less the time that drafts took.

    One step is the time that the step at hand would take without drafts; a token that holds is
    worth its share of it. Drafts may be long while the balance is above 0; below, only probes are
    paid for, and those that hold bring it back.
    """

    def __init__(self) -> None:
        self._balance = _MOST
        self._token_worth = 0.0

    @property
    def is_open(self) -> bool:
        """True if drafts have paid for themselves so far."""
        return self._balance > 0.0

    def charge(self, extra_ms: float, *, step_ms: float, num_certain: int, income: float) -> None:
        """Charge a step of `step_ms` and `num_certain` tokens for `extra_ms` spent on drafts.

        `income` is the part of a step that may be lost anyway.
        """
        self._token_worth = 1.0 / num_certain
        self._add(income - extra_ms / step_ms)

    def earn(self, num_tokens: int) -> None:
        """Credit the drafted tokens of the last charged step that held."""
        self._add(num_tokens * self._token_worth)

    def _add(self, num_steps: float) -> None:
        self._balance = min(max(self._balance + num_steps, _LEAST), _MOST)


@dataclass(frozen=True, slots=True)
class BranchBid:
    """A branch of a draft; `fork` and `parent` as there."""

    kind: DraftKind
    fork: int
    num_tokens: int
    parent: int = MAIN


@dataclass(frozen=True, slots=True)
class DraftBid:
    """A draft that wants rows.

    `choice_offsets` are the offsets of tokens that may fail to hold; all others hold if those
    before them do. None: every token may fail.
    """

    kind: DraftKind
    num_tokens: int
    choice_offsets: tuple[int, ...] | None = None
    branches: tuple[BranchBid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTerms:
    """The cost and the tokens of a step without drafts, and the cost of drafts in it.

    num_certain: tokens that it brings anyway, one a verified request.
    max_draft_rows: rows that are left for drafts.
    draft_row_counts: ascending numbers of draft rows worth considering, besides none and all.
    cost_ms: milliseconds of the step with a number of draft rows, those of prompts left out.
    branch_ms: milliseconds that a branch takes besides its rows.
    """

    num_certain: int
    max_draft_rows: int
    draft_row_counts: Sequence[int]
    cost_ms: Callable[[int], float]
    branch_ms: float = 0.0


class DraftBudget:
    """Shares a step's draft rows among all requests, judging by the results of earlier drafts.

    Drafts that did not pay for themselves are down to probes until some hold again.
    """

    def __init__(self) -> None:
        self._counters = AcceptanceCounters()
        self._branch_counters = AcceptanceCounters(prior_acceptance=PRIOR_BRANCH_ACCEPTANCE)
        self._account = DraftAccount()
        self._rest_length = 0
        self._num_rested = 0
        self._num_steps = 0
        self._granted_at: dict[DraftKind, int] = {}
        self._probe_credit_ms = 0.0

    def observe(
        self, kind: DraftKind, *, num_verified: int, num_held: int, num_kept: int | None = None
    ) -> None:
        """Record the verification of one draft, or of the choices that it made.

        `num_kept` tokens of the draft were written; by default as many as held.
        """
        self._counters.observe(kind, num_verified=num_verified, num_held=num_held)
        num_kept = num_held if num_kept is None else num_kept
        self._account.earn(num_kept)
        if num_kept:
            self._rest_length = 0

    def observe_branch(self, kind: DraftKind, *, num_verified: int, num_held: int) -> None:
        """Record a branch that was asked, because its parent held up to the fork and no further."""
        self._branch_counters.observe(kind, num_verified=num_verified, num_held=num_held)

    def expected_tokens(self, bid: DraftBid) -> float:
        """The tokens of a draft that are expected to hold, branches left out."""
        return sum(self._curves([bid])[0])

    def try_rest(self) -> bool:
        """True if this step may go without bids, because earlier bids got nothing."""
        if self._num_rested >= self._rest_length:
            return False
        self._num_rested += 1
        return True

    def allocate(self, bids: Sequence[DraftBid], terms: StepTerms) -> list[int]:
        """The number of tokens to verify of each bid's draft; bids come best rank first."""
        num_steps = 1 + self._num_rested
        self._num_steps += num_steps
        granted = [0] * len(bids)
        if self._account.is_open:
            granted = best_allocation(self._curves(bids), terms)
        is_worth_it = any(granted)
        self._probe(bids, granted, terms, num_steps=num_steps)
        for bid, num_tokens in zip(bids, granted, strict=True):
            if num_tokens:
                self._granted_at[bid.kind] = self._num_steps
        num_granted = sum(granted)
        step_ms = terms.cost_ms(0)
        self._account.charge(
            terms.cost_ms(num_granted) - step_ms,
            step_ms=step_ms,
            num_certain=terms.num_certain,
            income=PROBE_SHARE * num_steps,
        )
        self._num_rested = 0
        self._rest_length = 0 if is_worth_it else min(2 * self._rest_length + 1, _MAX_REST)
        return granted

    def choose_branches(
        self, bids: Sequence[DraftBid], granted: Sequence[int], terms: StepTerms
    ) -> list[list[int]]:
        """The branches of each bid's draft that pay, beside what `allocate` has granted."""
        chosen: list[list[int]] = [[] for _ in bids]
        if not any(bid.branches for bid in bids):
            return chosen
        curves = self._curves(bids)
        expected = terms.num_certain + sum(
            sum(curve[:count]) for curve, count in zip(curves, granted, strict=True)
        )
        num_rows = sum(granted)
        before_ms = step_ms = terms.cost_ms(num_rows)
        offers = [
            (worth / bid.branches[index].num_tokens, at, index, worth)
            for at, (bid, curve, count) in enumerate(zip(bids, curves, granted, strict=True))
            for index, worth in enumerate(self._branch_worths(bid, [1.0, *curve[:count]]))
        ]
        num_branches = 0
        for _, at, index, worth in sorted(offers, key=lambda offer: (-offer[0], offer[1:3])):
            branch = bids[at].branches[index]
            has_parent = branch.parent == MAIN or branch.parent in chosen[at]
            after = num_rows + branch.num_tokens
            if not has_parent or after > terms.max_draft_rows:
                continue
            after_ms = terms.cost_ms(after) + (num_branches + 1) * terms.branch_ms
            if (expected + worth) * step_ms > expected * after_ms:
                chosen[at].append(index)
                expected, step_ms, num_rows = expected + worth, after_ms, after
                num_branches += 1
        self._account.charge(
            step_ms - before_ms,
            step_ms=terms.cost_ms(0),
            num_certain=terms.num_certain,
            income=0.0,
        )
        return [sorted(indices) for indices in chosen]

    def _branch_worths(self, bid: DraftBid, held: Sequence[float]) -> list[float]:
        """The expected tokens of each branch, where its parent is there.

        held: the probability that so many of the draft's own tokens hold, from 0 on
        """
        ways: list[tuple[int, list[float]]] = []  # of each branch: where it begins, and the same
        worths: list[float] = []
        for branch in bid.branches:
            fork, way = (0, held) if branch.parent == MAIN else ways[branch.parent]
            at = branch.fork - fork
            is_there = at + 1 < len(way)
            asked = way[at] - way[at + 1] if is_there else 0.0
            survival = self._branch_counters.survival(branch.kind, branch.num_tokens)
            ways.append((branch.fork, [asked, *(asked * share for share in survival)]))
            worths.append(asked * sum(survival))
        return worths

    def _curves(self, bids: Sequence[DraftBid]) -> list[list[float]]:
        """The survival of each bid's tokens; bids of one kind share one computation."""
        longest: dict[DraftKind, int] = {}
        for bid in bids:
            longest[bid.kind] = max(longest.get(bid.kind, 0), bid.num_tokens)
        of_kind = {kind: self._counters.survival(kind, count) for kind, count in longest.items()}
        return [
            of_kind[bid.kind][: bid.num_tokens]
            if bid.choice_offsets is None
            else _spread(of_kind[bid.kind], bid.choice_offsets, bid.num_tokens)
            for bid in bids
        ]

    def _probe(
        self, bids: Sequence[DraftBid], granted: list[int], terms: StepTerms, *, num_steps: int
    ) -> None:
        """Grant a few tokens to the kind that went without for longest, if time was saved up."""
        num_granted = sum(granted)
        seen = {bid.kind for bid, num_tokens in zip(bids, granted, strict=True) if num_tokens}
        starved = [i for i, bid in enumerate(bids) if bid.num_tokens and bid.kind not in seen]
        if not starved or num_granted >= terms.max_draft_rows:
            return
        cost_ms = terms.cost_ms(num_granted)
        index = min(starved, key=lambda at: self._granted_at.get(bids[at].kind, 0))
        num_tokens = min(PROBE_TOKENS, bids[index].num_tokens, terms.max_draft_rows - num_granted)
        price_ms = max(0.0, terms.cost_ms(num_granted + num_tokens) - cost_ms)
        self._probe_credit_ms += PROBE_SHARE * cost_ms * num_steps
        if self._probe_credit_ms >= price_ms:
            self._probe_credit_ms = 0.0
            granted[index] = num_tokens


def best_allocation(curves: Sequence[Sequence[float]], terms: StepTerms) -> list[int]:
    """The number of leading tokens to verify of each draft, for the most tokens a second.

    A curve has the survival of a draft's tokens and never rises, so a given number of rows is best
    spent on the largest values of all curves. Every number of rows in question is tried, because
    the cost has steps: one more row may not pay where twenty more do.
    """
    falling = sorted((value for curve in curves for value in curve), reverse=True)
    max_rows = min(len(falling), terms.max_draft_rows)
    expected = list(accumulate(falling[:max_rows], initial=float(terms.num_certain)))
    counts = [count for count in terms.draft_row_counts if 0 < count < max_rows]
    best_count, best_rate = 0, expected[0] / terms.cost_ms(0)
    for count in (*counts, max_rows) if max_rows else ():
        rate = expected[count] / terms.cost_ms(count)
        if rate > best_rate:
            best_count, best_rate = count, rate
    return _take_largest(curves, falling, best_count)


def _take_largest(
    curves: Sequence[Sequence[float]], falling: Sequence[float], count: int
) -> list[int]:
    """Lengths of the curves' beginnings that hold the `count` largest values.

    Where several curves have the last of these values, the first curves get it.
    """
    if count == 0:
        return [0] * len(curves)
    least = falling[count - 1]
    # Curves fall, so their negatives can be searched: those above `least`, then those equal to it.
    taken = [bisect_left(curve, -least, key=_negated) for curve in curves]
    num_left = count - sum(taken)
    for index, curve in enumerate(curves):
        while num_left and taken[index] < len(curve) and curve[taken[index]] == least:
            taken[index] += 1
            num_left -= 1
    return taken


def _negated(value: float) -> float:
    return -value


def _spread(survival: Sequence[float], offsets: Sequence[int], num_tokens: int) -> list[float]:
    """The survival of each token, where only those at `offsets` may fail."""
    spread: list[float] = []
    held = 1.0
    choices = iter((*offsets, num_tokens))
    next_choice = next(choices)
    num_made = 0
    for offset in range(num_tokens):
        if offset == next_choice:
            held = survival[num_made]
            num_made += 1
            next_choice = next(choices)
        spread.append(held)
    return spread
