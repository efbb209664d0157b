"""Sharing a step's budget: never over it, everybody served, nothing wasted, nobody starved."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batching.token_budget import TokenDemand, TokenShare, share_tokens

demand_lists = st.lists(
    st.builds(
        TokenDemand,
        num_uncomputed_tokens=st.integers(1, 4) | st.integers(1, 300),
        max_draft_tokens=st.integers(0, 4) | st.integers(0, 64),
    ),
    min_size=1,
    max_size=8,
)


@st.composite
def demands_and_budgets(draw: st.DrawFn) -> tuple[list[TokenDemand], int]:
    demands = draw(demand_lists)
    return demands, draw(st.integers(len(demands), len(demands) + 400))


def is_closing(demand: TokenDemand, share: TokenShare) -> bool:
    return share.num_tokens == demand.num_uncomputed_tokens


@settings(deadline=None, max_examples=400)
@given(demands_and_budgets())
def test_shares_keep_to_budget_and_demand(example: tuple[list[TokenDemand], int]) -> None:
    demands, budget = example
    shares = share_tokens(demands, budget)
    assert sum(share.num_tokens + share.max_draft_tokens for share in shares) <= budget
    for demand, share in zip(demands, shares, strict=True):
        assert 1 <= share.num_tokens <= demand.num_uncomputed_tokens
        assert 0 <= share.max_draft_tokens <= demand.max_draft_tokens
        assert share.max_draft_tokens == 0 or is_closing(demand, share)


@settings(deadline=None, max_examples=400)
@given(demands_and_budgets())
def test_nothing_is_wasted_while_somebody_wants_it(
    example: tuple[list[TokenDemand], int],
) -> None:
    demands, budget = example
    shares = share_tokens(demands, budget)
    granted = sum(share.num_tokens + share.max_draft_tokens for share in shares)
    for demand, share in zip(demands, shares, strict=True):
        wants_more = not is_closing(demand, share) or (
            share.max_draft_tokens < demand.max_draft_tokens
        )
        assert granted == budget or not wants_more


@settings(deadline=None, max_examples=400)
@given(demands_and_budgets())
def test_neither_prefills_nor_drafts_starve(example: tuple[list[TokenDemand], int]) -> None:
    demands, budget = example
    shares = share_tokens(demands, budget)
    half = (budget - len(demands)) // 2
    prefilled = sum(share.num_tokens - 1 for share in shares)
    prefill_demand = sum(demand.num_uncomputed_tokens - 1 for demand in demands)
    assert prefilled >= min(half, prefill_demand)
    drafted = sum(share.max_draft_tokens for share in shares)
    draft_demand = sum(
        demand.max_draft_tokens for demand in demands if demand.num_uncomputed_tokens == 1
    )
    assert drafted >= min(half, draft_demand)


@settings(deadline=None, max_examples=400)
@given(demands_and_budgets())
def test_drafts_are_shared_evenly(example: tuple[list[TokenDemand], int]) -> None:
    demands, budget = example
    shares = share_tokens(demands, budget)
    closing = [pair for pair in zip(demands, shares, strict=True) if is_closing(*pair)]
    for demand, share in closing:
        if share.max_draft_tokens < demand.max_draft_tokens:
            largest = max(other.max_draft_tokens for _, other in closing)
            assert largest <= share.max_draft_tokens + 1


@settings(deadline=None)
@given(demands_and_budgets())
def test_the_first_prefill_is_served_before_the_second(
    example: tuple[list[TokenDemand], int],
) -> None:
    demands, budget = example
    pairs = list(zip(demands, share_tokens(demands, budget), strict=True))
    unfinished = [index for index, pair in enumerate(pairs) if not is_closing(*pair)]
    if unfinished:
        assert all(share.num_tokens == 1 for _, share in pairs[unfinished[0] + 1 :])


@pytest.mark.parametrize(
    ("demands", "budget", "expected"),
    [
        ([TokenDemand(100, 64)], 64, [TokenShare(64, 0)]),
        ([TokenDemand(1, 64)], 512, [TokenShare(1, 64)]),
        ([TokenDemand(1, 64), TokenDemand(1, 0)], 66, [TokenShare(1, 64), TokenShare(1, 0)]),
        ([TokenDemand(1000, 64), TokenDemand(1, 64)], 102, [TokenShare(51, 0), TokenShare(1, 50)]),
        ([TokenDemand(1000, 64), TokenDemand(1, 10)], 102, [TokenShare(91, 0), TokenShare(1, 10)]),
        ([TokenDemand(20, 0), TokenDemand(1, 64)], 512, [TokenShare(20, 0), TokenShare(1, 64)]),
    ],
)
def test_examples(demands: list[TokenDemand], budget: int, expected: list[TokenShare]) -> None:
    assert share_tokens(demands, budget) == expected
