"""The allocation against all allocations, and what drafts of a kind get after what they did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.acceptance import DraftKind
from lookup.draft_budget import (
    PROBE_TOKENS,
    DraftAccount,
    DraftBid,
    DraftBudget,
    StepTerms,
    best_allocation,
)

GOOD = DraftKind("merge", 3)
POOR = DraftKind("output", 0)
curves = st.lists(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.5, 0.9, 1.0]), max_size=4).map(
        lambda values: sorted(values, reverse=True)
    ),
    max_size=4,
)


def stairs(steps: Sequence[float]) -> StepTerms:
    """Terms under which every count is considered and the cost is a list."""
    return StepTerms(
        num_certain=1,
        max_draft_rows=len(steps) - 1,
        draft_row_counts=range(1, len(steps)),
        cost_ms=lambda num_drafted: steps[num_drafted],
    )


def linear(
    *, base_ms: float, row_ms: float, num_certain: int = 1, max_rows: int = 512
) -> StepTerms:
    return StepTerms(
        num_certain=num_certain,
        max_draft_rows=max_rows,
        draft_row_counts=range(1, max_rows),
        cost_ms=lambda num_drafted: base_ms + row_ms * num_drafted,
    )


def rate_of(curves: Sequence[Sequence[float]], lengths: Sequence[int], terms: StepTerms) -> float:
    expected = terms.num_certain + sum(
        sum(curve[:length]) for curve, length in zip(curves, lengths, strict=True)
    )
    return expected / terms.cost_ms(sum(lengths))


@settings(deadline=None, max_examples=400)
@given(
    curves=curves,
    steps=st.lists(st.sampled_from([1.0, 2.0, 5.0, 20.0]), min_size=17, max_size=17),
    max_rows=st.integers(0, 16),
    num_certain=st.integers(1, 9),
    counts=st.sets(st.integers(1, 16)),
)
def test_no_allocation_is_better(
    curves: list[list[float]],
    steps: list[float],
    max_rows: int,
    num_certain: int,
    counts: set[int],
) -> None:
    terms = StepTerms(
        num_certain=num_certain,
        max_draft_rows=max_rows,
        draft_row_counts=sorted(counts),
        cost_ms=lambda num_drafted: steps[num_drafted],
    )
    granted = best_allocation(curves, terms)
    total = sum(granted)
    num_wanted = min(max_rows, sum(map(len, curves)))
    considered = {0, num_wanted, *(count for count in counts if count < num_wanted)}
    assert total in considered
    best = max(
        rate_of(curves, lengths, terms)
        for lengths in product(*(range(len(curve) + 1) for curve in curves))
        if sum(lengths) in considered
    )
    assert rate_of(curves, granted, terms) == pytest.approx(best)


def test_a_step_in_the_cost_is_crossed_where_it_pays() -> None:
    # One more row costs as much as twenty more: a greedy search would stop before the step.
    steps = [10.0] + [30.0] * 20 + [90.0] * 20
    assert best_allocation([[0.9] * 40], stairs(steps)) == [20]
    assert best_allocation([[0.05] * 40], stairs(steps)) == [0]


def test_ties_go_to_the_first_in_rank() -> None:
    steps = [10.0, 10.0, 10.0, 10.0, 99.0, 99.0, 99.0]
    assert best_allocation([[0.5, 0.5], [0.9, 0.5], [0.5]], stairs(steps)) == [2, 1, 0]


def test_nothing_to_draft_is_nothing() -> None:
    assert best_allocation([], stairs([1.0])) == []
    assert best_allocation([[0.9]], stairs([1.0])) == [0]


def test_drafts_fade_out_as_requests_come() -> None:
    """A row costs the same however many there are, so only the fixed part makes drafts pay."""
    budget = DraftBudget()
    for _ in range(50):
        budget.observe(GOOD, num_verified=64, num_held=20)
    shares = []
    for num_requests in (1, 4, 16, 64, 256):
        terms = linear(base_ms=60.0 + num_requests, row_ms=1.0, num_certain=num_requests)
        granted = budget.allocate([DraftBid(GOOD, 64)] * num_requests, terms)
        shares.append(sum(granted) / num_requests)
        budget.observe(GOOD, num_verified=64, num_held=20, num_kept=sum(granted))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] >= 16
    assert shares[-1] < shares[0] / 8


def test_what_holds_gets_the_rows_of_what_does_not() -> None:
    budget = DraftBudget()
    for _ in range(50):
        budget.observe(GOOD, num_verified=64, num_held=64)
        budget.observe(POOR, num_verified=64, num_held=0)
    bids = [DraftBid(POOR, 64), DraftBid(GOOD, 64)]
    granted = budget.allocate(bids, linear(base_ms=60.0, row_ms=0.5, num_certain=2))
    assert granted[1] == 64
    assert granted[0] <= PROBE_TOKENS


def test_probes_take_a_hundredth_of_the_time_and_end_a_famine() -> None:
    budget = DraftBudget()
    for _ in range(200):
        budget.observe(POOR, num_verified=64, num_held=0)
    terms = linear(base_ms=60.0, row_ms=20.0)
    spent_ms = total_ms = 0.0
    for _ in range(4000):
        (granted,) = budget.allocate([DraftBid(POOR, 64)], terms)
        assert granted in (0, PROBE_TOKENS)
        budget.observe(POOR, num_verified=granted, num_held=0)
        spent_ms += 20.0 * granted
        total_ms += terms.cost_ms(granted)
    assert 0.005 < spent_ms / total_ms < 0.011
    cheap = linear(base_ms=60.0, row_ms=1.0)
    lengths = []
    for _ in range(2000):
        (granted,) = budget.allocate([DraftBid(POOR, 64)], cheap)
        budget.observe(POOR, num_verified=granted, num_held=granted)
        lengths.append(granted)
    assert lengths[-1] == 64, "drafts that hold again are long again"


def test_drafts_that_do_not_hold_lose_no_more_than_a_few_steps() -> None:
    """Each kind may look good for itself until it was tried; all together they are held back."""
    budget = DraftBudget()
    terms = linear(base_ms=60.0, row_ms=1.0)
    lost_ms = 0.0
    for number in range(2000):
        kind = DraftKind(f"reference {number}", 3)
        (granted,) = budget.allocate([DraftBid(kind, 64)], terms)
        budget.observe(kind, num_verified=granted, num_held=0)
        lost_ms += 1.0 * granted
    assert lost_ms < 60.0 * (1 + 2) + 0.02 * 2000 * 60.0
    (granted,) = budget.allocate([DraftBid(GOOD, 64)], terms)
    assert granted <= PROBE_TOKENS
    for _ in range(100):
        (granted,) = budget.allocate([DraftBid(GOOD, 64)], terms)
        budget.observe(GOOD, num_verified=granted, num_held=granted)
    assert granted == 64, "probes that hold open the account again"


def test_nobody_is_asked_in_every_step_while_nothing_is_granted() -> None:
    budget = DraftBudget()
    for _ in range(200):
        budget.observe(POOR, num_verified=64, num_held=0)
    terms = linear(base_ms=60.0, row_ms=20.0)
    asked = []
    for step in range(200):
        if not budget.try_rest():
            asked.append(step)
            (granted,) = budget.allocate([DraftBid(POOR, 64)], terms)
            budget.observe(POOR, num_verified=granted, num_held=0)
    assert 200 / 9 <= len(asked) <= 45
    hold = DraftBudget()
    for _ in range(100):
        assert not hold.try_rest(), "who gets rows is asked again at once"
        (granted,) = hold.allocate([DraftBid(GOOD, 64)], linear(base_ms=60.0, row_ms=0.5))
        assert granted > 32
        hold.observe(GOOD, num_verified=64, num_held=64)


def test_only_choices_can_fail() -> None:
    budget = DraftBudget()
    for _ in range(50):
        budget.observe(POOR, num_verified=4, num_held=0)
    terms = linear(base_ms=60.0, row_ms=1.0)
    sure = DraftBid(POOR, 40, choice_offsets=())
    doubtful_behind = DraftBid(POOR, 40, choice_offsets=(25,))
    doubtful = DraftBid(POOR, 40, choice_offsets=(0,))
    assert budget.allocate([sure], terms) == [40]
    assert budget.allocate([doubtful_behind], terms) == [25]
    assert sum(budget.allocate([doubtful], terms)) <= PROBE_TOKENS


def test_a_draft_without_room_is_no_error() -> None:
    assert DraftBudget().allocate(
        [DraftBid(GOOD, 64)], linear(base_ms=1, row_ms=1, max_rows=0)
    ) == [0]


def charge(account: DraftAccount, extra_ms: float, *, num_certain: int = 1) -> None:
    account.charge(extra_ms, step_ms=50.0, num_certain=num_certain, income=0.0)


def test_losses_close_it_and_one_token_that_holds_is_a_step() -> None:
    account = DraftAccount()
    for _ in range(2):
        charge(account, 20.0)
        assert account.is_open
    charge(account, 30.0)
    assert not account.is_open
    charge(account, 0.0)
    account.earn(1)
    assert account.is_open


def test_a_token_of_a_step_with_many_is_worth_its_share() -> None:
    account = DraftAccount()
    charge(account, 75.0)
    charge(account, 0.0, num_certain=64)
    account.earn(32)
    assert not account.is_open, "half a step was missing, and half a step came"
    account.earn(1)
    assert account.is_open


def test_neither_gains_nor_losses_are_remembered_without_end() -> None:
    account = DraftAccount()
    for _ in range(1000):
        charge(account, 0.0)
        account.earn(64)
    for _ in range(2):
        charge(account, 25.0)
    assert not account.is_open
    for _ in range(1000):
        charge(account, 500.0)
    charge(account, 0.0)
    account.earn(2)
    assert account.is_open


def test_a_small_income_pays_debts_in_time() -> None:
    account = DraftAccount()
    charge(account, 100.0)
    assert not account.is_open
    for _ in range(150):
        account.charge(0.0, step_ms=50.0, num_certain=4, income=0.01)
    assert account.is_open
