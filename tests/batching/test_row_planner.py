"""Who gets a step's rows: known tokens, drafts that pay, and nobody more than there are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.engine.erratic_costs import ErraticCosts
from oracles.engine.target_runner import NoisyProposer, make_target

from batching.block_pool import BlockPool
from batching.cache.prefix_cache import PrefixCache
from batching.request import EngineRequest, RequestState, SamplingParams
from batching.row_planner import PlannedRows, RowPlanner, TokenDemand, TokenShare, share_tokens
from batching.step_costs import CostRates, StepCosts
from batching.step_plan import ScheduledRequest, VerifiedTokens

MAX_ROWS = 128
# 60 ms for one row, and 2 ms for each further one.
STEEP = StepCosts({1: 60.0, 513: 60.0 + 512 * 2.0}, rates=CostRates())
FLAT = StepCosts({1: 60.0, 513: 61.0}, rates=CostRates())


def make_state(num_prompt: int, num_computed: int, k: int = 64) -> RequestState:
    prompt = tuple(range(num_prompt))
    proposer = NoisyProposer(make_target(prompt, 80), error_rate=0.0)
    request = EngineRequest(
        request_id=f"{num_prompt}-{num_computed}",
        prompt_token_ids=prompt,
        sampling=SamplingParams(max_tokens=80),
        proposer=proposer,
        max_draft_tokens=k,
    )
    cache = PrefixCache(BlockPool(4), block_size=4, model_fingerprint="m")
    state = RequestState(request, chain=cache.new_chain(b""), now=0.0)
    state.num_computed_tokens = num_computed
    return state


def make_planner(costs: StepCosts | None) -> RowPlanner:
    return RowPlanner(max_draft_tokens=64, costs=costs)


def numbers(planned: Sequence[PlannedRows]) -> list[tuple[int, int]]:
    return [(rows.num_tokens, len(rows.draft or ())) for rows in planned]


def judge_drafts(planner: RowPlanner, planned: Sequence[PlannedRows], *, holds: bool) -> None:
    """Let verification accept every draft, or refuse the first token of each."""
    for rows in planned:
        scheduled = ScheduledRequest(
            request_id="r",
            token_ids=(1,),
            start=0,
            block_ids=(0,),
            draft=rows.draft,
            has_logits=True,
            output_position=rows.state.num_output_tokens,
            sampling=rows.state.request.sampling,
        )
        num_drafted = len(rows.draft or ())
        num_held = num_drafted if holds else 0
        verified = VerifiedTokens(tuple(range(num_held + 1)), num_held)
        planner.observe(scheduled, verified, num_verified=num_drafted, num_held=num_held)


states = st.lists(
    st.tuples(st.integers(1, 300), st.integers(0, 300), st.sampled_from([0, 3, 64])).map(
        lambda drawn: make_state(drawn[0], min(drawn[0] - 1, drawn[1]), drawn[2])
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None, max_examples=200)
@given(states=states, seed=st.integers(0, 9) | st.none())
def test_rows_keep_to_the_budget_and_everybody_gets_one(
    states: list[RequestState], seed: int | None
) -> None:
    planned = make_planner(None if seed is None else ErraticCosts(seed)).plan(
        states, max_rows=MAX_ROWS
    )
    assert [rows.state for rows in planned] == states
    total = sum(sum(pair) for pair in numbers(planned))
    assert total <= MAX_ROWS
    for rows in planned:
        gap = rows.state.num_uncomputed_tokens
        assert 1 <= rows.num_tokens <= gap
        assert rows.draft is None or rows.num_tokens == gap
        assert len(rows.draft or ()) <= rows.state.request.max_draft_tokens
    is_open = any(rows.num_tokens < rows.state.num_uncomputed_tokens for rows in planned)
    is_anybody_writing = any(rows.state.num_uncomputed_tokens == 1 for rows in planned)
    assert not is_open or total == MAX_ROWS or (seed is not None and is_anybody_writing), (
        "rows are left though somebody could use them"
    )


# 0.5 ms for each further row.
GENTLE = StepCosts({1: 30.0, 513: 30.0 + 512 * 0.5}, rates=CostRates())


@pytest.mark.parametrize(
    ("costs", "num_rows"),
    [(STEEP, 64), (GENTLE, 288), (FLAT, 447)],
    ids=["steep", "gentle", "flat"],
)
def test_a_long_prompt_holds_up_those_who_write_by_one_chunk(
    costs: StepCosts, num_rows: int
) -> None:
    decoding, prefilling = make_state(10, 9, k=0), make_state(6000, 0, k=0)
    planner = make_planner(costs)
    (decode, prefill) = numbers(planner.plan([decoding, prefilling], max_rows=449))
    assert (decode, prefill) == ((1, 0), (num_rows + 1, 0))
    (alone,) = numbers(planner.plan([prefilling], max_rows=449))
    assert alone == (449, 0), "nobody is held up"


def test_a_short_prompt_and_the_first_one_have_half_each() -> None:
    long, short = make_state(3000, 0, k=0), make_state(300, 0, k=0)
    planner = make_planner(None)
    assert numbers(planner.plan([long, short], max_rows=202)) == [(101, 0), (101, 0)]
    assert numbers(planner.plan([long, short], max_rows=802)) == [(502, 0), (300, 0)]
    assert numbers(planner.plan([short, long], max_rows=202)) == [(201, 0), (1, 0)]


def test_drafts_that_fail_leave_their_rows_to_prompts() -> None:
    # A hundred further rows of the prompt take no more than a chunk may.
    planner = make_planner(StepCosts({1: 60.0, 513: 60.0 + 512 * 0.75}, rates=CostRates()))
    decoding, prefilling = make_state(10, 9), make_state(290, 0)
    for _ in range(40):
        planned = planner.plan([decoding, prefilling], max_rows=MAX_ROWS)
        judge_drafts(planner, planned, holds=False)
    (decode, prefill) = numbers(planner.plan([decoding, prefilling], max_rows=MAX_ROWS))
    assert decode[1] <= 2
    assert prefill[0] >= MAX_ROWS - 3


def test_drafts_that_hold_keep_half_of_the_rows_beside_a_long_prompt() -> None:
    planner = make_planner(FLAT)
    planned = planner.plan(
        [make_state(10, 9), make_state(11, 10), make_state(290, 0)], max_rows=MAX_ROWS
    )
    assert [pair[1] for pair in numbers(planned)] == [32, 31, 0]
    assert numbers(planned)[2] == (63, 0)


def test_a_prompt_that_ends_in_this_step_is_drafted_behind() -> None:
    (rows,) = numbers(make_planner(FLAT).plan([make_state(20, 0)], max_rows=MAX_ROWS))
    assert rows == (20, 64)


def test_a_prompt_does_not_make_the_drafts_behind_it_shorter() -> None:
    """Its rows would count as tokens that cost less than drafted ones."""
    costs = StepCosts({1: 30.0, 513: 30.0 + 512 * 0.5}, rates=CostRates(plain_row_ms=0.3))
    planner = make_planner(costs)
    alone, behind, unfinished = (40, 39), (290, 0), (600, 0)
    for _ in range(20):
        found = []
        for shapes in ([alone], [behind], [alone, unfinished]):
            planned = planner.plan([make_state(*shape) for shape in shapes], max_rows=400)
            judge_drafts(planner, planned, holds=True)
            found.append(numbers(planned))
    assert found == [[(1, 64)], [(290, 64)], [(1, 64), (335, 0)]]


@pytest.mark.parametrize("k", [0, 5, 64, 200])
def test_k_of_a_request_is_the_most_it_gets(k: int) -> None:
    (rows,) = numbers(make_planner(FLAT).plan([make_state(10, 9, k)], max_rows=MAX_ROWS))
    assert rows == (1, min(k, 64))


def test_fixed_drafts_are_as_long_as_they_may_be() -> None:
    planner = make_planner(None)
    decoding = make_state(10, 9)
    for _ in range(40):
        judge_drafts(planner, planner.plan([decoding], max_rows=MAX_ROWS), holds=False)
    assert numbers(planner.plan([decoding], max_rows=MAX_ROWS)) == [(1, 64)]


def test_drafts_shrink_as_requests_come() -> None:
    lengths = []
    for num_requests in (1, 4, 16, 64):
        planned = make_planner(STEEP).plan(
            [make_state(10 + i, 9 + i) for i in range(num_requests)], max_rows=MAX_ROWS
        )
        lengths.append(sum(len(rows.draft or ()) for rows in planned) / num_requests)
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 10
    assert lengths[-1] <= 1


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
def test_the_first_prefill_and_the_shortest_have_half_each(
    example: tuple[list[TokenDemand], int],
) -> None:
    demands, budget = example
    pairs = list(zip(demands, share_tokens(demands, budget), strict=True))
    unfinished = [pair for pair in pairs if not is_closing(*pair)]
    if unfinished:
        num_prefilled = sum(share.num_tokens - 1 for _, share in pairs)
        least = min(unfinished, key=lambda pair: pair[0].num_uncomputed_tokens)
        up_to_first = pairs[: pairs.index(unfinished[0]) + 1]
        assert sum(share.num_tokens - 1 for _, share in up_to_first) >= num_prefilled // 2
        shorter = [
            share.num_tokens - 1
            for demand, share in pairs
            if demand.num_uncomputed_tokens <= least[0].num_uncomputed_tokens
        ]
        assert sum(shorter) >= num_prefilled // 2
        # Nobody else has anything but from these halves.
        assert sum(share.num_tokens > 1 for _, share in unfinished) <= 2


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
