"""Rotary position embedding in place, one program a token and a few of its heads."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_HEADS_AT_ONCE = 8


def rotary_triton(query: Tensor, key: Tensor, *, cos: Tensor, sin: Tensor) -> None:
    """Do as `rotary_reference`."""
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    assert query.stride(2) == key.stride(2) == cos.stride(1) == sin.stride(1) == 1
    assert cos.stride(0) == sin.stride(0)
    _rotate[(num_tokens, triton.cdiv(num_heads + num_kv_heads, _HEADS_AT_ONCE))](
        query,
        key,
        cos,
        sin,
        query.stride(0),
        query.stride(1),
        key.stride(0),
        key.stride(1),
        cos.stride(0),
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HALF=head_dim // 2,
        HALF_BLOCK=triton.next_power_of_2(head_dim // 2),
        HEADS_BLOCK=_HEADS_AT_ONCE,
        num_warps=2,
    )


@triton.jit
def _rotate(
    query_ptr,
    key_ptr,
    cos_ptr,
    sin_ptr,
    query_token_stride,
    query_head_stride,
    key_token_stride,
    key_head_stride,
    angle_stride,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    HALF_BLOCK: tl.constexpr,
    HEADS_BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS_BLOCK + tl.arange(0, HEADS_BLOCK)  # queries, then keys
    dims = tl.arange(0, HALF_BLOCK)
    is_dim = dims < HALF
    cos = tl.load(cos_ptr + token * angle_stride + dims, mask=is_dim, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + token * angle_stride + dims, mask=is_dim, other=0.0).to(tl.float32)
    query_at = query_ptr + token * query_token_stride + heads[:, None] * query_head_stride
    is_query = (heads < NUM_HEADS)[:, None] & is_dim[None, :]
    _rotate_heads(query_at + dims[None, :], is_query, cos[None, :], sin[None, :], HALF)
    kv_heads = heads - NUM_HEADS
    key_at = key_ptr + token * key_token_stride + kv_heads[:, None] * key_head_stride
    is_key = ((kv_heads >= 0) & (kv_heads < NUM_KV_HEADS))[:, None] & is_dim[None, :]
    _rotate_heads(key_at + dims[None, :], is_key, cos[None, :], sin[None, :], HALF)


@triton.jit
def _rotate_heads(first_ptr, is_inside, cos, sin, HALF: tl.constexpr):
    first = tl.load(first_ptr, mask=is_inside, other=0.0)
    second = tl.load(first_ptr + HALF, mask=is_inside, other=0.0)
    left, right = first.to(tl.float32), second.to(tl.float32)
    tl.store(first_ptr, (left * cos - right * sin).to(first.dtype), mask=is_inside)
    tl.store(first_ptr + HALF, (right * cos + left * sin).to(first.dtype), mask=is_inside)
