"""Attention of one request on the CPU as products by oneDNN, heads that share keys stacked up."""

from __future__ import annotations

import torch
from torch import Tensor

# oneDNN makes code for each shape that it meets, so there must be few of them. Whole tiles also
# give a row the same bits in any number of rows.
_CONTEXT_TILE = 128
_ROW_TILE = 8
# Rows times heads of a group in one product, which has scores of up to 16 MiB.
_MAX_STACKED_ROWS = 768
_MAX_SCORES = 1 << 22


def has_stacked_attention(dtype: torch.dtype) -> bool:
    """Whether `attend_stacked` can be used: in these formats, where torch has oneDNN."""
    return dtype in (torch.float32, torch.bfloat16) and bool(
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )


def attend_stacked(query: Tensor, keys: Tensor, values: Tensor, *, scale: float) -> Tensor:
    """Causal attention of the last rows of a context: [num_rows, num_heads, head_dim].

    A row has the same bits whatever number of rows is computed with it.

    query: [num_rows, num_heads, head_dim] float32 or bfloat16
    keys, values: [num_kv_heads, context_len, head_dim] of the same dtype, any strides
    """
    num_rows, num_heads, _ = query.shape
    num_kv_heads, context_len, _ = keys.shape
    keys, values = _fill_up(keys), _fill_up(values)
    num_stacked = min(_MAX_STACKED_ROWS, _MAX_SCORES // keys.shape[1])
    num_groups = num_heads // num_kv_heads
    block_rows = max(_ROW_TILE, num_stacked // num_groups // _ROW_TILE * _ROW_TILE)
    output = torch.empty_like(query)
    for start in range(0, num_rows, block_rows):
        rows = query[start : start + block_rows]
        first_position = context_len - num_rows + start
        seen = _whole_tiles(first_position + len(rows))
        output[start : start + block_rows] = _attend_block(
            rows, keys[:, :seen], values[:, :seen], first_position=first_position, scale=scale
        )
    return output


def _attend_block(
    rows: Tensor, keys: Tensor, values: Tensor, *, first_position: int, scale: float
) -> Tensor:
    """Attention of rows from `first_position` on: [num_rows, num_heads, head_dim].

    keys, values: [num_kv_heads, context_len, head_dim], whole tiles, contiguous for each head
    """
    num_rows, num_heads, head_dim = rows.shape
    num_kv_heads, context_len, _ = keys.shape
    # In bfloat16 torch's own product of all heads is oneDNN's as well, whole tiles or not.
    is_together = rows.dtype == torch.bfloat16
    is_single = is_together and num_rows == 1
    num_tiled = 1 if is_single else num_rows + -num_rows % _ROW_TILE
    stacked = rows.new_zeros(num_heads, num_tiled, head_dim)
    torch.mul(rows.transpose(0, 1), scale, out=stacked[:, :num_rows])
    # Behind the first row's own position, rows see more and more of the context's end.
    num_hidden = context_len - first_position - 1
    mask = rows.new_full((num_tiled, num_hidden), float("-inf")).triu_()
    attended = torch.empty_like(stacked)
    together = (-1, num_kv_heads if is_together else 1)
    num_stacked = num_heads // num_kv_heads * num_tiled
    for head_rows, head_keys, head_values, head_output in zip(
        stacked.view(*together, num_stacked, head_dim),
        keys.view(*together, context_len, head_dim),
        values.view(*together, context_len, head_dim),
        attended.view(*together, num_stacked, head_dim),
        strict=True,
    ):
        scores = _multiply(head_rows, head_keys)  # [heads, num_stacked, context_len]
        scores.view(-1, num_tiled, context_len)[:, :, first_position + 1 :].add_(mask)
        torch.softmax(scores, dim=-1, out=scores)
        head_output.copy_(_multiply(scores, head_values.transpose(1, 2)))
    return attended[:, :num_rows].transpose(0, 1)


def _multiply(rows: Tensor, weights: Tensor) -> Tensor:
    """`rows @ weights.T` of each head: [num_heads, num_rows, num_columns].

    In float32, which is one head at a time, torch itself would take MKL, which is slow on AMD CPUs.
    oneDNN is slow too, unless `weights` or its transpose is contiguous.
    """
    if rows.dtype == torch.bfloat16:
        return torch.bmm(rows, weights.transpose(1, 2))
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows[0], weights[0], None, "none", [], "")
    return product[None]


def _fill_up(context: Tensor) -> Tensor:
    """A copy [num_kv_heads, context_len, head_dim], contiguous, with zeros up to a whole tile."""
    num_kv_heads, context_len, head_dim = context.shape
    filled = context.new_empty(num_kv_heads, _whole_tiles(context_len), head_dim)
    filled[:, :context_len] = context
    filled[:, context_len:] = 0
    return filled


def _whole_tiles(context_len: int) -> int:
    return context_len + -context_len % _CONTEXT_TILE
