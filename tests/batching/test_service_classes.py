"""Preemption takes the lowest in rank, as many as needed, and nobody for nothing."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from batching.block_pool import BlockPool
from batching.cache.prefix_cache import PrefixCache
from batching.request import EngineRequest, Priority, RequestState, SamplingParams
from batching.service_classes import find_victims


def make_state(name: int, blocks: list[int]) -> RequestState:
    request = EngineRequest(
        request_id=str(name),
        prompt_token_ids=(1,),
        sampling=SamplingParams(max_tokens=1),
        priority=Priority.BATCH,
    )
    cache = PrefixCache(BlockPool(1), block_size=4, model_fingerprint="m")
    state = RequestState(request, chain=cache.new_chain(b""), now=float(name))
    state.block_ids = blocks
    return state


@settings(deadline=None, max_examples=300)
@given(
    num_held=st.lists(st.integers(0, 4), max_size=5),
    num_shared=st.integers(0, 2),
    num_blocks=st.integers(0, 20),
    num_places=st.integers(-1, 3),
)
def test_victims_suffice_and_each_is_needed(
    num_held: list[int], num_shared: int, num_blocks: int, num_places: int
) -> None:
    pool = BlockPool(24)
    shared = pool.try_reserve(num_shared) or []
    states = []
    for name, count in enumerate(num_held):
        own = pool.try_reserve(count)
        assert own is not None
        pool.share(shared)
        states.append(make_state(name, [*shared, *own]))
    pool.release(shared)
    pool.try_reserve(pool.num_free_blocks // 2)

    def is_enough(chosen: list[RequestState]) -> bool:
        num_own = sum(num_held[int(one.request.request_id)] for one in chosen)
        num_freed = num_own + (num_shared if chosen and len(chosen) == len(states) else 0)
        return pool.num_free_blocks + num_freed >= num_blocks and len(chosen) >= num_places

    victims = find_victims(states, pool, num_blocks=num_blocks, num_places=num_places)
    if victims is None:
        assert not is_enough(states)
        return
    assert is_enough(victims)
    for smaller in combinations(victims, max(0, len(victims) - 1)):
        assert not victims or not is_enough(list(smaller))


def test_the_lowest_in_rank_go_first() -> None:
    pool = BlockPool(6)
    states = [make_state(name, pool.try_reserve(2) or []) for name in range(3)]
    assert find_victims(states, pool, num_blocks=2, num_places=0) == [states[2]]
    assert find_victims(states, pool, num_blocks=3, num_places=0) == [states[2], states[1]]
    assert find_victims(states, pool, num_blocks=0, num_places=0) == []
    assert find_victims(states, pool, num_blocks=7, num_places=0) is None
    assert find_victims(states, pool, num_blocks=0, num_places=4) is None


def test_one_who_holds_too_little_to_matter_stays() -> None:
    pool = BlockPool(5)
    large, small = (
        make_state(1, pool.try_reserve(4) or []),
        make_state(2, pool.try_reserve(1) or []),
    )
    assert find_victims([large, small], pool, num_blocks=4, num_places=0) == [large]
