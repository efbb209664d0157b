"""Reuse of computed KV blocks between requests; the device tier of the prefix cache."""

from __future__ import annotations

from collections.abc import Sequence

from batching.block_hash import BlockHash, chain_root, hash_block
from batching.block_pool import BlockPool


class PrefixChain:
    """The block hashes of one growing token sequence, each computed once."""

    def __init__(self, root: BlockHash, block_size: int) -> None:
        self._parent = root
        self._block_size = block_size
        self.block_hashes: list[BlockHash] = []

    def extend(self, token_ids: Sequence[int], num_blocks: int) -> list[BlockHash]:
        """Hash up to `num_blocks` full blocks of `token_ids`; the hashes of all so far."""
        for block in range(len(self.block_hashes), num_blocks):
            start = block * self._block_size
            self._parent = hash_block(self._parent, token_ids[start : start + self._block_size])
            self.block_hashes.append(self._parent)
        return self.block_hashes


class PrefixCache:
    """Finds the blocks that a request need not compute, and remembers those it did compute."""

    def __init__(self, block_pool: BlockPool, *, block_size: int, model_fingerprint: str) -> None:
        self._block_pool = block_pool
        self._block_size = block_size
        self._model_fingerprint = model_fingerprint.encode()

    def new_chain(self, cache_salt: bytes) -> PrefixChain:
        """An empty chain for a request of the tenant with this salt."""
        return PrefixChain(chain_root(self._model_fingerprint, cache_salt), self._block_size)

    def take_prefix(self, chain: PrefixChain, token_ids: Sequence[int]) -> list[int]:
        """Blocks holding the longest cached prefix of `token_ids`, one reference taken to each.

        At least one token is left to compute, because its logits are needed.
        """
        num_blocks = (len(token_ids) - 1) // self._block_size
        blocks = self._block_pool.match(chain.extend(token_ids, num_blocks)[:num_blocks])
        self._block_pool.share(blocks)
        return blocks

    def store(
        self, chain: PrefixChain, token_ids: Sequence[int], *, blocks: Sequence[int], start: int
    ) -> int:
        """Register every full block of the computed `token_ids` from block `start` on.

        Returns the number of full blocks, the next call's `start`.
        """
        num_blocks = len(token_ids) // self._block_size
        if num_blocks > start:
            block_hashes = chain.extend(token_ids, num_blocks)
            for block in range(start, num_blocks):
                self._block_pool.register(blocks[block], block_hashes[block])
        return num_blocks
