"""Reuse of computed blocks: full blocks, same model, same tenant, one token left to compute."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batching.block_pool import BlockPool
from batching.cache.prefix_cache import PrefixCache, PrefixChain

BLOCK_SIZE = 4


def make_cache(pool: BlockPool, *, model_fingerprint: str = "model") -> PrefixCache:
    return PrefixCache(pool, block_size=BLOCK_SIZE, model_fingerprint=model_fingerprint)


def compute(cache: PrefixCache, pool: BlockPool, token_ids: list[int], salt: bytes = b"") -> None:
    """A request that computes all of `token_ids`, stores them and ends."""
    blocks = pool.try_reserve(-(-len(token_ids) // BLOCK_SIZE))
    assert blocks is not None
    cache.store(cache.new_chain(salt), token_ids, num_tokens=len(token_ids), blocks=blocks, start=0)
    pool.release(blocks)


def num_cached(cache: PrefixCache, pool: BlockPool, token_ids: list[int], salt: bytes = b"") -> int:
    """How many tokens a new request would find; takes nothing in the end."""
    blocks = cache.take_prefix(cache.new_chain(salt), token_ids)
    pool.check_invariants()
    pool.release(blocks)
    return len(blocks) * BLOCK_SIZE


@pytest.mark.parametrize(
    ("num_stored", "num_asked", "expected"),
    [
        (3, 9, 0),
        (4, 4, 0),  # the only block is full, but its last token's logits are needed
        (4, 5, 4),
        (7, 9, 4),
        (8, 8, 4),
        (8, 9, 8),
        (12, 12, 8),
        (40, 13, 12),
        (8, 1, 0),
    ],
)
def test_only_full_blocks_and_never_the_last_token(
    num_stored: int, num_asked: int, expected: int
) -> None:
    pool = BlockPool(16)
    cache = make_cache(pool)
    compute(cache, pool, list(range(num_stored)))
    assert num_cached(cache, pool, list(range(num_asked))) == expected


@settings(deadline=None)
@given(
    stored=st.lists(st.integers(0, 1), max_size=20),
    asked=st.lists(st.integers(0, 1), min_size=1, max_size=20),
)
def test_what_is_found_is_the_common_prefix_in_full_blocks(
    stored: list[int], asked: list[int]
) -> None:
    pool = BlockPool(8)
    cache = make_cache(pool)
    compute(cache, pool, stored)
    num_common = next(
        (i for i, pair in enumerate(zip(stored, asked, strict=False)) if pair[0] != pair[1]),
        min(len(stored), len(asked)),
    )
    num_blocks = min(num_common // BLOCK_SIZE, (len(asked) - 1) // BLOCK_SIZE)
    assert num_cached(cache, pool, asked) == num_blocks * BLOCK_SIZE
    assert pool.num_free_blocks == 8


def test_equal_tokens_behind_different_beginnings_are_different() -> None:
    pool = BlockPool(8)
    cache = make_cache(pool)
    compute(cache, pool, [1, 1, 1, 1, 5, 6, 7, 8])
    assert num_cached(cache, pool, [2, 2, 2, 2, 5, 6, 7, 8, 9]) == 0
    assert num_cached(cache, pool, [5, 6, 7, 8, 9]) == 0


def test_tenants_do_not_see_each_other() -> None:
    pool = BlockPool(8)
    cache = make_cache(pool)
    compute(cache, pool, list(range(9)), salt=b"one")
    assert num_cached(cache, pool, list(range(9)), salt=b"one") == 8
    assert num_cached(cache, pool, list(range(9)), salt=b"two") == 0
    assert num_cached(cache, pool, list(range(9))) == 0


def test_models_do_not_see_each_other() -> None:
    pool = BlockPool(8)
    compute(make_cache(pool), pool, list(range(9)))
    assert num_cached(make_cache(pool), pool, list(range(9))) == 8
    assert num_cached(make_cache(pool, model_fingerprint="other"), pool, list(range(9))) == 0


def test_a_taken_prefix_is_held() -> None:
    pool = BlockPool(4)
    cache = make_cache(pool)
    compute(cache, pool, list(range(9)))
    taken = cache.take_prefix(cache.new_chain(b""), list(range(9)))
    assert len(taken) == 2
    assert pool.num_free_blocks == 2
    assert pool.try_reserve(3) is None
    pool.release(taken)
    assert pool.num_free_blocks == 4


def test_a_growing_sequence_is_stored_piece_by_piece() -> None:
    pool = BlockPool(8)
    cache = make_cache(pool)
    token_ids = list(range(30, 47))
    blocks = pool.try_reserve(5)
    assert blocks is not None
    chain = cache.new_chain(b"")
    start = 0
    for num_computed in range(1, len(token_ids) + 1):
        start = cache.store(
            chain,
            token_ids[:num_computed],
            num_tokens=len(token_ids[:num_computed]),
            blocks=blocks,
            start=start,
        )
        assert start == num_computed // BLOCK_SIZE
        # One more token than is stored, so that every stored block may be taken.
        found = num_cached(cache, pool, [*token_ids[:num_computed], 0])
        assert found == start * BLOCK_SIZE
    assert chain.block_hashes == PrefixChain(cache.new_chain(b"")._parent, 4).extend(token_ids, 4)
