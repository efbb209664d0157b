"""The block pool against a brute-force model, with its invariants checked after each operation."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from oracles.engine.brute_block_pool import BruteBlockPool

from batching.block_pool import BlockPool, chain_root, hash_block

NUM_BLOCKS = 7
HASHES = [bytes([i]) * 32 for i in range(5)]


class BlockPoolMachine(RuleBasedStateMachine):
    """Holders come and go; a holder's blocks are a table that it fills in order."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(NUM_BLOCKS)
        self.model = BruteBlockPool(NUM_BLOCKS)
        self.tables: list[list[int]] = []

    @rule(num_blocks=st.integers(0, NUM_BLOCKS + 1))
    def reserve(self, num_blocks: int) -> None:
        blocks = self.pool.try_reserve(num_blocks)
        assert blocks == self.model.try_reserve(num_blocks)
        if blocks:
            self.tables.append(blocks)

    @rule(block_hashes=st.lists(st.sampled_from(HASHES), unique=True, max_size=4))
    def share(self, block_hashes: list[bytes]) -> None:
        blocks = self.pool.match(block_hashes)
        assert blocks == self.model.match(block_hashes)
        self.pool.share(blocks)
        self.model.share(blocks)
        if blocks:
            self.tables.append(blocks)

    @precondition(lambda self: self.tables)
    @rule(draw=st.data())
    def release(self, draw: st.DataObject) -> None:
        table = self.tables.pop(draw.draw(st.integers(0, len(self.tables) - 1)))
        self.pool.release(table)
        self.model.release(table)

    @precondition(lambda self: self.tables)
    @rule(draw=st.data(), block_hash=st.sampled_from(HASHES))
    def register(self, draw: st.DataObject, block_hash: bytes) -> None:
        table = draw.draw(st.sampled_from(self.tables))
        block = draw.draw(st.sampled_from(table))
        self.pool.register(block, block_hash)
        self.model.register(block, block_hash)

    @invariant()
    def agree(self) -> None:
        self.pool.check_invariants()
        assert self.pool.num_free_blocks == len(self.model.free)
        for block_hash in HASHES:
            assert self.pool.match([block_hash]) == self.model.match([block_hash])

    def teardown(self) -> None:
        for table in self.tables:
            self.pool.release(table)
            self.model.release(table)
        self.pool.check_invariants()
        assert self.pool.num_free_blocks == NUM_BLOCKS
        assert self.pool.try_reserve(NUM_BLOCKS) == self.model.try_reserve(NUM_BLOCKS)


TestBlockPool = BlockPoolMachine.TestCase
TestBlockPool.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_a_refused_reservation_takes_nothing() -> None:
    pool = BlockPool(3)
    assert pool.try_reserve(2) is not None
    assert pool.try_reserve(2) is None
    assert pool.num_free_blocks == 1


def test_content_survives_its_release_until_the_block_is_needed() -> None:
    pool = BlockPool(3)
    table = pool.try_reserve(2)
    assert table is not None
    for block, block_hash in zip(table, HASHES, strict=False):
        pool.register(block, block_hash)
    pool.release(table)
    assert pool.num_free_blocks == 3
    assert pool.match(HASHES) == table
    other = pool.try_reserve(1)
    assert other is not None
    assert other[0] not in table, "an empty block is used before a cached one"
    assert pool.match(HASHES) == table
    second = pool.try_reserve(1)
    assert second == [table[1]], "of a chain the end is given up first"
    assert pool.match(HASHES) == table[:1]


def test_the_least_recently_released_content_is_given_up_first() -> None:
    pool = BlockPool(2)
    first, second = pool.try_reserve(1), pool.try_reserve(1)
    assert first is not None
    assert second is not None
    pool.register(first[0], HASHES[0])
    pool.register(second[0], HASHES[1])
    pool.release(second)
    pool.release(first)
    pool.share(second)  # used again, and so the more recent one
    pool.release(second)
    assert pool.try_reserve(1) == first


def test_held_content_is_never_given_up() -> None:
    pool = BlockPool(2)
    table = pool.try_reserve(1)
    assert table is not None
    pool.register(table[0], HASHES[0])
    pool.share(table)
    pool.release(table)
    assert pool.try_reserve(2) is None
    assert pool.match(HASHES[:1]) == table


def test_releasing_twice_is_found() -> None:
    pool = BlockPool(1)
    table = pool.try_reserve(1)
    assert table is not None
    pool.release(table)
    with pytest.raises(AssertionError, match="released twice"):
        pool.release(table)


tokens = st.lists(st.integers(0, 1 << 20), max_size=6)


@settings(deadline=None)
@given(left=st.lists(tokens, max_size=4), right=st.lists(tokens, max_size=4))
def test_chains_are_equal_for_equal_blocks_only(
    left: list[list[int]], right: list[list[int]]
) -> None:
    def hash_chain(blocks: list[list[int]]) -> bytes:
        parent = chain_root(b"model", b"")
        for block in blocks:
            parent = hash_block(parent, block)
        return parent

    assert (hash_chain(left) == hash_chain(right)) == (left == right)


@settings(deadline=None)
@given(left=st.tuples(st.binary(), st.binary()), right=st.tuples(st.binary(), st.binary()))
def test_roots_are_equal_for_the_same_model_and_tenant_only(
    left: tuple[bytes, bytes], right: tuple[bytes, bytes]
) -> None:
    assert (chain_root(*left) == chain_root(*right)) == (left == right)


def test_model_and_salt_do_not_run_into_each_other() -> None:
    assert chain_root(b"ab", b"c") != chain_root(b"a", b"bc")


def test_the_hash_is_the_same_in_every_process() -> None:
    expected = hashlib.sha256(
        b"p" * 32 + (1).to_bytes(8, "little") + (70_000).to_bytes(8, "little")
    ).digest()
    assert hash_block(b"p" * 32, (1, 70_000)) == expected
