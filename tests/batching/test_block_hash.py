"""Block hashes: equal for equal histories only."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from batching.block_hash import chain_root, hash_block

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
