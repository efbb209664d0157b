"""Content hashes of full KV blocks, chained so that a hash stands for everything before it."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

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
