"""Writes new keys and values to their slots in the paged cache."""

from __future__ import annotations

from torch import Tensor


def store_kv_reference(
    keys: Tensor,
    values: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
) -> None:
    """Write `keys` and `values` to their slots; a token with slot -1 is not stored.

    keys, values: [num_tokens, num_kv_heads, head_dim], any strides
    key_cache, value_cache: [num_blocks, block_size, num_kv_heads, head_dim]; written in place
    slot_mapping: [num_tokens] int64; slot = block * block_size + offset, no slot twice
    """
    kept = (slot_mapping >= 0).nonzero().squeeze(1)  # [num_kept]
    slots = slot_mapping[kept]
    key_cache.view(-1, *keys.shape[1:]).index_copy_(0, slots, keys[kept])
    value_cache.view(-1, *values.shape[1:]).index_copy_(0, slots, values[kept])


def store_kv_cpu(
    keys: Tensor,
    values: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
) -> None:
    """Do as `store_kv_reference` without the copies that choosing the kept tokens takes.

    Real steps on the CPU have no padding, so every token is kept.
    """
    if bool((slot_mapping < 0).any()):
        store_kv_reference(
            keys, values, key_cache=key_cache, value_cache=value_cache, slot_mapping=slot_mapping
        )
        return
    key_cache.view(-1, *keys.shape[1:]).index_copy_(0, slot_mapping, keys)
    value_cache.view(-1, *values.shape[1:]).index_copy_(0, slot_mapping, values)
