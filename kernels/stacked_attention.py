"""Attention of one request on the CPU by oneDNN's products, with heads that share keys stacked."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.row_grouping import RowGrouping

# oneDNN makes code for each shape that it meets, so there must be few of them: rows are filled up
# to whole tiles, and so is what they see of the context.
_CONTEXT_TILE = 128
_ROW_TILE = 8
# oneDNN cuts longer sums in pieces, at places that depend on the number of rows and on the length:
# with AVX-512 from 384 numbers on, and from 640 where it multiplies bfloat16 itself.
_CHUNK_LEN = 256
# Rows times heads of a group in one product, which has scores of up to 16 MiB.
_MAX_STACKED_ROWS = 768
_MAX_SCORES = 1 << 22


def attend_stacked(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    scale: float,
    grouping: RowGrouping = RowGrouping.ALL,
) -> Tensor:
    """Causal attention of the last rows of a context: [num_rows, num_heads, head_dim].

    A row has the same bits whatever number of rows is computed with it, and whatever stands behind
    it in the context. Where oneDNN does not give them, a slower `grouping` does.

    query: [num_rows, num_heads, head_dim] bfloat16
    keys, values: [num_kv_heads, context_len, head_dim] of the same dtype, any strides
    """
    num_rows, num_heads, _ = query.shape
    num_kv_heads, context_len, _ = keys.shape
    keys, values = _fill_up(keys), _fill_up_chunks(values)
    row_tile = _ROW_TILE
    if grouping is RowGrouping.SINGLE or (grouping is RowGrouping.ALL and num_rows == 1):
        row_tile = 1
    block_rows = row_tile
    if grouping is RowGrouping.ALL:
        num_stacked = min(_MAX_STACKED_ROWS, _MAX_SCORES // keys.shape[1])
        num_tiles = num_stacked * num_kv_heads // num_heads // row_tile
        block_rows = max(1, num_tiles) * row_tile
    output = torch.empty_like(query)
    for start in range(0, num_rows, block_rows):
        rows = query[start : start + block_rows]
        first_position = context_len - num_rows + start
        output[start : start + block_rows] = _attend_block(
            rows,
            keys[:, : _round_up(first_position + len(rows), _CONTEXT_TILE)],
            values,
            first_position=first_position,
            scale=scale,
            row_tile=row_tile,
        )
    return output


def _attend_block(
    rows: Tensor, keys: Tensor, values: Tensor, *, first_position: int, scale: float, row_tile: int
) -> Tensor:
    """Attention of rows from `first_position` on: [num_rows, num_heads, head_dim].

    keys: [num_kv_heads, context_len, head_dim], whole tiles, contiguous for each head
    values: [num_chunks, num_kv_heads, chunk_len, head_dim], of this context or a longer one
    """
    num_rows, num_heads, head_dim = rows.shape
    num_kv_heads, context_len, _ = keys.shape
    num_tiled = _round_up(num_rows, row_tile)
    stacked = rows.new_zeros(num_heads, num_tiled, head_dim)
    torch.mul(rows.transpose(0, 1), scale, out=stacked[:, :num_rows])
    # [num_kv_heads, num_stacked, context_len]
    scores = torch.bmm(stacked.view(num_kv_heads, -1, head_dim), keys.transpose(1, 2))
    # Behind the first row's own position, rows see more and more of the context's end.
    num_hidden = context_len - first_position - 1
    mask = rows.new_full((num_tiled, num_hidden), float("-inf")).triu_()
    scores.view(num_heads, num_tiled, context_len)[:, :, first_position + 1 :].add_(mask)
    torch.softmax(scores, dim=-1, out=scores)
    attended = _multiply_values(scores, values).view(num_heads, num_tiled, head_dim)
    return attended[:, :num_rows].transpose(0, 1)


def _multiply_values(weights: Tensor, values: Tensor) -> Tensor:
    """`weights @ values` of each head by chunks, added in float32 in the context's order.

    A chunk that a row does not see adds exactly nothing.

    weights: [num_kv_heads, num_stacked, context_len]
    values: [num_chunks, num_kv_heads, chunk_len, head_dim], of this context or a longer one
    Returns [num_kv_heads, num_stacked, head_dim].
    """
    num_kv_heads, num_stacked, context_len = weights.shape
    num_whole, rest = divmod(context_len, _CHUNK_LEN)
    products: list[Tensor] = []
    if num_whole:
        # One call for all of them: of few rows, calls are what takes the time.
        whole = weights[:, :, : context_len - rest].reshape(
            num_kv_heads, num_stacked, num_whole, _CHUNK_LEN
        )
        whole = whole.permute(2, 0, 1, 3).reshape(-1, num_stacked, _CHUNK_LEN)
        product = torch.bmm(whole, values[:num_whole].flatten(0, 1))
        products.extend(product.view(num_whole, num_kv_heads, num_stacked, -1))
    if rest:
        products.append(torch.bmm(weights[:, :, -rest:], values[num_whole, :, :rest]))
    if len(products) == 1:
        return products[0]
    total = products[0].float()
    for product in products[1:]:
        total += product
    return total.to(weights.dtype)


def _fill_up(context: Tensor) -> Tensor:
    """A copy [num_kv_heads, context_len, head_dim], contiguous, with zeros up to a whole tile."""
    num_kv_heads, context_len, head_dim = context.shape
    filled = context.new_empty(num_kv_heads, _round_up(context_len, _CONTEXT_TILE), head_dim)
    filled[:, :context_len] = context
    filled[:, context_len:] = 0
    return filled


def _fill_up_chunks(context: Tensor) -> Tensor:
    """Do as `_fill_up`, by chunks: [num_chunks, num_kv_heads, chunk_len, head_dim], contiguous."""
    num_kv_heads, context_len, head_dim = context.shape
    num_whole, rest = divmod(context_len, _CHUNK_LEN)
    filled = context.new_empty(num_whole + bool(rest), num_kv_heads, _CHUNK_LEN, head_dim)
    for index in range(num_whole):
        filled[index] = context[:, index * _CHUNK_LEN : (index + 1) * _CHUNK_LEN]
    if rest:
        filled[num_whole, :, :rest] = context[:, -rest:]
        filled[num_whole, :, rest:] = 0
    return filled


def _round_up(length: int, tile: int) -> int:
    return length + -length % tile
