"""Blocks of the paged KV cache: free or referenced, and findable by the hash of their content."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from itertools import chain

BlockHash = bytes


def chain_root(model_fingerprint: bytes, cache_salt: bytes) -> BlockHash:
    """The parent of a first block: SHA-256 over model and tenant, each with its length."""
    digest = hashlib.sha256(len(model_fingerprint).to_bytes(8, "little"))
    digest.update(model_fingerprint)
    digest.update(cache_salt)
    return digest.digest()


def hash_block(parent: BlockHash, token_ids: Sequence[int]) -> BlockHash:
    """SHA-256 over the parent's hash and the block's token ids as 64-bit integers."""
    return hashlib.sha256(parent + array("q", token_ids).tobytes()).digest()


class BlockPool:
    """Reference-counted blocks. A freed block keeps its content until it is handed out again.

    Free blocks are handed out least recently freed first, so cached content lives as long as there
    is room. The only writer of reference counts.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._ref_counts = [0] * num_blocks
        self._hashes: list[BlockHash | None] = [None] * num_blocks
        self._block_of_hash: dict[BlockHash, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict((i, None) for i in range(num_blocks))

    @property
    def num_free_blocks(self) -> int:
        """Blocks without a reference; blocks that hold cached content count too."""
        return len(self._free)

    def try_reserve(self, num_blocks: int) -> list[int] | None:
        """Take `num_blocks` blocks of undefined content, or None (and nothing) if there are fewer.

        Cached content in them is forgotten.
        """
        if num_blocks > len(self._free):
            return None
        blocks = []
        for _ in range(num_blocks):
            block, _ = self._free.popitem(last=False)
            self._forget(block)
            self._ref_counts[block] = 1
            blocks.append(block)
        return blocks

    def num_free_without(self, holders: Iterable[Sequence[int]]) -> int:
        """Blocks that would be free if each of `holders` gave its blocks back."""
        num_held = Counter(chain.from_iterable(holders))
        num_freed = sum(self._ref_counts[block] == count for block, count in num_held.items())
        return len(self._free) + num_freed

    def match(self, block_hashes: Iterable[BlockHash]) -> list[int]:
        """The cached blocks of the longest prefix of `block_hashes`. Takes no reference."""
        blocks = []
        for block_hash in block_hashes:
            block = self._block_of_hash.get(block_hash)
            if block is None:
                break
            blocks.append(block)
        return blocks

    def share(self, blocks: Sequence[int]) -> None:
        """Take one more reference to each of `blocks`, free ones included."""
        for block in blocks:
            if self._ref_counts[block] == 0:
                del self._free[block]
            self._ref_counts[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """Give back one reference to each block; blocks without references become free.

        The end of a chain is useful only with its beginning, so it is freed (and reused) first.
        """
        for block in reversed(blocks):
            assert self._ref_counts[block] > 0, f"block {block} released twice"
            self._ref_counts[block] -= 1
            if self._ref_counts[block] == 0:
                self._free[block] = None
                if self._hashes[block] is None:
                    self._free.move_to_end(block, last=False)

    def register(self, block: int, block_hash: BlockHash) -> None:
        """Make a fully written block findable. The first block of a hash stays the one found."""
        if block_hash not in self._block_of_hash:
            self._forget(block)
            self._block_of_hash[block_hash] = block
            self._hashes[block] = block_hash

    def check_invariants(self) -> None:
        """Raise AssertionError if the books do not balance; for tests."""
        for block in range(self.num_blocks):
            assert (self._ref_counts[block] == 0) == (block in self._free), block
            assert self._ref_counts[block] >= 0, block
        for block_hash, block in self._block_of_hash.items():
            assert self._hashes[block] == block_hash, block
        assert sum(h is not None for h in self._hashes) == len(self._block_of_hash)

    def _forget(self, block: int) -> None:
        block_hash = self._hashes[block]
        if block_hash is not None:
            del self._block_of_hash[block_hash]
            self._hashes[block] = None
