"""Reuse of computed KV blocks between requests: on the device, and from the tiers below it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from batching.block_pool import BlockHash, BlockPool, chain_root, hash_block
from batching.cache.lower_tiers import LowerTiers
from batching.cache.prefix_load import PrefixLoad
from batching.cache.stats import TierStats
from batching.cache.value import ChunkName


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


class ChunkTransfer(Protocol):
    """Moves chunks between blocks on the device and payloads in host memory."""

    def copy_out(self, block_ids: Sequence[int], payload: memoryview) -> None:
        """Write the blocks of one chunk to host memory."""
        ...

    def copy_in(self, block_ids: Sequence[int], payload: memoryview, *, first_block: int) -> None:
        """Fill blocks with those of a chunk, from `first_block` on."""
        ...


class PrefixCache:
    """Finds the blocks that a request need not compute, and remembers those it did compute.

    With `lower` tiers, prompts are also kept in chunks of whole blocks that outlive the blocks.
    """

    def __init__(
        self,
        block_pool: BlockPool,
        *,
        block_size: int,
        model_fingerprint: str,
        lower: LowerTiers | None = None,
        transfer: ChunkTransfer | None = None,
    ) -> None:
        assert (lower is None) == (transfer is None), "lower tiers and their transfer come together"
        self._block_pool = block_pool
        self._block_size = block_size
        self._model_fingerprint = model_fingerprint.encode()
        self._lower = lower
        self._transfer = transfer

    def new_chain(self, cache_salt: bytes) -> PrefixChain:
        """An empty chain for a request of the tenant with this salt."""
        return PrefixChain(chain_root(self._model_fingerprint, cache_salt), self._block_size)

    def begin_load(self, chain: PrefixChain, token_ids: Sequence[int]) -> PrefixLoad | None:
        """Search the lower tiers for what the device lacks of `token_ids`; None if that is nothing.

        The caller ends the load. Chunks that reach the last token are left to compute.
        """
        if self._lower is None:
            return None
        num_chunks = (len(token_ids) - 1) // self._lower.value_format.num_tokens
        num_blocks = num_chunks * self._chunk_blocks
        block_hashes = chain.extend(token_ids, num_blocks)
        first_chunk = len(self._block_pool.match(block_hashes[:num_blocks])) // self._chunk_blocks
        if first_chunk >= num_chunks:
            return None
        names = [self._name(chain, token_ids, chunk) for chunk in range(first_chunk, num_chunks)]
        return self._lower.begin(first_chunk, names)

    def take_prefix(
        self, chain: PrefixChain, token_ids: Sequence[int], load: PrefixLoad | None = None
    ) -> list[int]:
        """Blocks holding the longest cached prefix of `token_ids`, one reference taken to each.

        What `load` has found is copied to blocks of the device, as long as there are some. At least
        one token is left to compute, because its logits are needed.
        """
        num_blocks = (len(token_ids) - 1) // self._block_size
        blocks = self._block_pool.match(chain.extend(token_ids, num_blocks)[:num_blocks])
        self._block_pool.share(blocks)
        if load is not None and load.buffers:
            self._copy_in(chain, blocks, load, max_blocks=num_blocks)
        return blocks

    def store(
        self,
        chain: PrefixChain,
        token_ids: Sequence[int],
        *,
        num_tokens: int,
        blocks: Sequence[int],
        start: int,
    ) -> int:
        """Register every full block of the first `num_tokens` tokens, from block `start` on.

        Returns the number of full blocks, the next call's `start`.
        """
        num_blocks = num_tokens // self._block_size
        if num_blocks > start:
            block_hashes = chain.extend(token_ids, num_blocks)
            for block in range(start, num_blocks):
                self._block_pool.register(blocks[block], block_hashes[block])
        return num_blocks

    def offer_chunks(
        self,
        chain: PrefixChain,
        prompt_token_ids: Sequence[int],
        *,
        blocks: Sequence[int],
        start: int,
        num_cached_tokens: int,
    ) -> int:
        """Offer the prompt's chunks that the computed `blocks` fill, from chunk `start` on.

        Those that were cached are offered only where that costs no copy. Returns the number of
        chunks that have been offered, the next call's `start`.
        """
        if self._lower is None or self._transfer is None:
            return 0
        chunk_tokens = self._lower.value_format.num_tokens
        num_computed = min(len(blocks) * self._block_size, len(prompt_token_ids))
        for chunk in range(start, num_computed // chunk_tokens):
            own = blocks[chunk * self._chunk_blocks : (chunk + 1) * self._chunk_blocks]
            is_cached = (chunk + 1) * chunk_tokens <= num_cached_tokens
            self._lower.offer(
                self._name(chain, prompt_token_ids, chunk),
                None if is_cached else partial(self._transfer.copy_out, own),
            )
        return max(start, num_computed // chunk_tokens)

    def observe_step(self, num_tokens: int, seconds: float) -> None:
        """Observe the speed of prefill in a step; loading a prefix must be faster."""
        if self._lower is not None:
            self._lower.prefill.observe(num_tokens, seconds)

    def stats(self) -> tuple[TierStats, ...]:
        """Figures of the lower tiers."""
        return () if self._lower is None else self._lower.stats()

    def wait_for_stores(self, timeout_s: float) -> bool:
        """Wait until what was offered is kept or dropped; False if that takes too long."""
        return self._lower is None or self._lower.wait_for_stores(timeout_s)

    def close(self) -> None:
        """End the threads of the lower tiers."""
        if self._lower is not None:
            self._lower.close()

    @property
    def _chunk_blocks(self) -> int:
        assert self._lower is not None, "there are chunks only in lower tiers"
        return self._lower.value_format.num_tokens // self._block_size

    def _name(self, chain: PrefixChain, token_ids: Sequence[int], chunk: int) -> ChunkName:
        """The name of a chunk that `chain` has come to the end of."""
        assert self._lower is not None, "there are chunks only in lower tiers"
        chunk_tokens = self._lower.value_format.num_tokens
        last_hash = chain.block_hashes[(chunk + 1) * self._chunk_blocks - 1]
        own = token_ids[chunk * chunk_tokens : (chunk + 1) * chunk_tokens]
        return self._lower.value_format.name_chunk(last_hash, own)

    def _copy_in(
        self, chain: PrefixChain, blocks: list[int], load: PrefixLoad, *, max_blocks: int
    ) -> None:
        """Append blocks with the loaded chunks that follow on `blocks`."""
        assert self._lower is not None, "only lower tiers load"
        assert self._transfer is not None, "lower tiers come with a transfer"
        started = time.monotonic()
        num_copied = 0
        for chunk, buffer in enumerate(load.buffers, start=load.first_chunk):
            first_block = len(blocks) - chunk * self._chunk_blocks
            stop = (chunk + 1) * self._chunk_blocks
            if first_block >= self._chunk_blocks:
                continue
            if first_block < 0 or stop > max_blocks:
                break
            reserved = self._block_pool.try_reserve(stop - len(blocks))
            if reserved is None:
                break
            payload = self._lower.value_format.payload(buffer.memory)
            try:
                self._transfer.copy_in(reserved, payload, first_block=first_block)
            except Exception:  # the rest of the prompt is computed
                self._block_pool.release(reserved)
                self._lower.count_failure("a chunk could not be copied to the device")
                break
            for block in reserved:
                self._block_pool.register(block, chain.block_hashes[len(blocks)])
                blocks.append(block)
            num_copied += 1
        if num_copied:
            self._lower.observe_copy(num_copied, time.monotonic() - started)
