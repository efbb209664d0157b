"""Rotary position embedding of queries and keys, in place."""

from __future__ import annotations

from torch import Tensor


def rotary_reference(query: Tensor, key: Tensor, *, cos: Tensor, sin: Tensor) -> None:
    """Rotate each head's first half against its second one, by the angles of the token's row.

    Computed in float32 and rounded once.

    query: [num_tokens, num_heads, head_dim]; key: [num_tokens, num_kv_heads, head_dim]; views of
        packed rows are fine, the last dimension must be contiguous
    cos, sin: [num_tokens, head_dim], the second half a repetition of the first
    """
    half = query.shape[-1] // 2
    cos, sin = cos[:, None, :half].float(), sin[:, None, :half].float()
    for heads in (query, key):
        first, second = heads[..., :half].float(), heads[..., half:].float()
        rotated = first * cos - second * sin, second * cos + first * sin
        heads[..., :half], heads[..., half:] = rotated
