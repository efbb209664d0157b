"""Writes new keys and values to their slots in the paged cache, one program a token."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


def store_kv_triton(
    keys: Tensor,
    values: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
) -> None:
    """Do as `store_kv_reference`; the last dimension of `keys` and `values` must be contiguous."""
    num_tokens, num_kv_heads, head_dim = keys.shape
    assert keys.stride(2) == values.stride(2) == 1
    assert key_cache.is_contiguous()
    assert value_cache.is_contiguous()
    row_size = num_kv_heads * head_dim
    _store_kv[(num_tokens,)](
        keys,
        values,
        key_cache,
        value_cache,
        slot_mapping,
        keys.stride(0),
        keys.stride(1),
        values.stride(0),
        values.stride(1),
        HEAD_DIM=head_dim,
        ROW_SIZE=row_size,
        BLOCK=triton.next_power_of_2(row_size),
    )


@triton.jit
def _store_kv(
    keys_ptr,
    values_ptr,
    key_cache_ptr,
    value_cache_ptr,
    slot_mapping_ptr,
    key_token_stride,
    key_head_stride,
    value_token_stride,
    value_head_stride,
    HEAD_DIM: tl.constexpr,
    ROW_SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping_ptr + token)
    if slot >= 0:
        offsets = tl.arange(0, BLOCK)
        is_inside = offsets < ROW_SIZE
        head = offsets // HEAD_DIM
        dim = offsets % HEAD_DIM
        key = tl.load(
            keys_ptr + token * key_token_stride + head * key_head_stride + dim, mask=is_inside
        )
        value = tl.load(
            values_ptr + token * value_token_stride + head * value_head_stride + dim,
            mask=is_inside,
        )
        tl.store(key_cache_ptr + slot * ROW_SIZE + offsets, key, mask=is_inside)
        tl.store(value_cache_ptr + slot * ROW_SIZE + offsets, value, mask=is_inside)
