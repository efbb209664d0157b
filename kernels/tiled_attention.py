"""Attention of one request on the CPU by torch's blocked kernel, in shapes that fix its sums."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from kernels.row_grouping import RowGrouping

# Shapes at which the kernel takes every sum in the same order: contexts are cut into chunks, the
# last one and the rows are filled up to whole tiles.
_CHUNK_LEN = 256
_CONTEXT_TILE = 128
_ROW_TILE = 8
# Numbers that the chunks of one block of rows give, 16 MiB of them.
_MAX_CHUNK_NUMBERS = 1 << 22


def attend_tiled(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    scale: float,
    grouping: RowGrouping = RowGrouping.ALL,
) -> Tensor:
    """Causal attention of the last rows of a context: [num_rows, num_heads, head_dim].

    A row has the same bits whatever number of rows is computed with it, and whatever stands behind
    it in the context. Where torch does not give them, a slower `grouping` does.

    query: [num_rows, num_heads, head_dim]
    keys, values: [num_kv_heads, context_len, head_dim] of the same dtype, any strides
    """
    num_rows, num_heads, head_dim = query.shape
    context_len = keys.shape[1]
    block_rows = 1 if grouping is RowGrouping.SINGLE else _ROW_TILE
    if grouping is RowGrouping.ALL:
        num_chunks = -(-context_len // _CHUNK_LEN)
        fitting = _MAX_CHUNK_NUMBERS // (num_chunks * num_heads * head_dim)
        block_rows = max(1, fitting // _ROW_TILE) * _ROW_TILE
    output = torch.empty_like(query)
    for start in range(0, num_rows, block_rows):
        rows = query[start : start + block_rows]
        first_position = context_len - num_rows + start
        seen = first_position + len(rows)
        output[start : start + block_rows] = _attend_block(
            rows, keys[:, :seen], values[:, :seen], first_position=first_position, scale=scale
        )
    return output


def _attend_block(
    rows: Tensor, keys: Tensor, values: Tensor, *, first_position: int, scale: float
) -> Tensor:
    """Rows [num_rows, num_heads, head_dim] from `first_position` on, chunk by chunk."""
    num_rows = rows.shape[0]
    fill = -num_rows % _ROW_TILE
    tiled = functional.pad(rows, (0, 0, 0, 0, 0, fill)).transpose(0, 1)  # [heads, tiled_rows, d]
    num_whole = (first_position + 1) // _CHUNK_LEN
    chunks: list[tuple[Tensor, Tensor]] = []
    if num_whole:
        chunks.extend(_attend_whole_chunks(tiled, keys, values, num_chunks=num_whole, scale=scale))
    for start in range(num_whole * _CHUNK_LEN, keys.shape[1], _CHUNK_LEN):
        chunks.append(
            _attend_hidden_chunk(
                tiled,
                _fill_up(keys[:, start : start + _CHUNK_LEN]),
                _fill_up(values[:, start : start + _CHUNK_LEN]),
                first_position=first_position - start,
                scale=scale,
            )
        )
    if len(chunks) == 1:
        return chunks[0][0][:, :num_rows].transpose(0, 1)
    log_sums = torch.stack([log_sum for _, log_sum in chunks])
    weights = (log_sums - log_sums.amax(dim=0)).exp_()[..., None]
    # One chunk after the other: those that a row does not see add exactly nothing.
    total, norm = chunks[0][0] * weights[0], weights[0].clone()
    for (attended, _), weight in zip(chunks[1:], weights[1:], strict=True):
        total.addcmul_(attended, weight)
        norm += weight
    return (total / norm)[:, :num_rows].transpose(0, 1)


def _attend_whole_chunks(
    rows: Tensor, keys: Tensor, values: Tensor, *, num_chunks: int, scale: float
) -> list[tuple[Tensor, Tensor]]:
    """Attention over each of the first chunks, which every row sees whole.

    Returns for each [num_heads, num_rows, head_dim], and the logarithms of its sums.
    """
    num_heads, num_rows, head_dim = rows.shape
    num_kv_heads = keys.shape[0]

    def by_chunk(context: Tensor) -> Tensor:
        whole = context[:, : num_chunks * _CHUNK_LEN]
        return whole.reshape(num_kv_heads, num_chunks, _CHUNK_LEN, head_dim).transpose(0, 1)

    # Without a mask the heads of a group can stand as rows.
    grouped = rows.reshape(1, num_kv_heads, -1, head_dim).expand(num_chunks, -1, -1, -1)
    attended, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        grouped, by_chunk(keys), by_chunk(values), 0.0, False, scale=scale
    )
    attended = attended.reshape(num_chunks, num_heads, num_rows, head_dim)
    log_sums = log_sums.reshape(num_chunks, num_heads, num_rows)
    return list(zip(attended.unbind(), log_sums.unbind(), strict=True))


def _attend_hidden_chunk(
    rows: Tensor, keys: Tensor, values: Tensor, *, first_position: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Do as `_attend_whole_chunks`, over one chunk that is partly hidden from some rows.

    `first_position` is that of the first row, counted from the chunk's first key.
    """
    num_rows, chunk_len = rows.shape[1], keys.shape[1]
    positions = torch.arange(first_position, first_position + num_rows)[:, None]
    is_hidden = torch.arange(chunk_len)[None] > positions
    mask = torch.zeros(is_hidden.shape, dtype=rows.dtype).masked_fill_(is_hidden, float("-inf"))
    # Rows before the chunk see nothing of it; a softmax over nothing would be no number.
    is_before = positions[:, 0] < 0
    mask[is_before] = 0
    attended, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        rows[None], keys[None], values[None], 0.0, False, attn_mask=mask, scale=scale
    )
    return attended[0], log_sums[0].masked_fill(is_before, float("-inf"))


def _fill_up(chunk: Tensor) -> Tensor:
    """A chunk [num_kv_heads, chunk_len, head_dim], with zeros up to a whole tile."""
    fill = -chunk.shape[1] % _CONTEXT_TILE
    return functional.pad(chunk, (0, 0, 0, fill)) if fill else chunk
