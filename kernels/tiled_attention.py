"""Attention on the CPU whose rows have the same bits, however many are computed together."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from kernels.paged_attention import gather_context

# Shapes at which torch's blocked CPU kernel takes every sum in the same order: contexts are cut
# into chunks, the last one and the rows are filled up to whole tiles.
_CHUNK_LEN = 256
_CONTEXT_TILE = 128
_ROW_TILE = 8


def paged_attention_tiled(
    query: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    cu_query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """`paged_attention_reference` for layers that round their input.

    They would make of a difference in the last bit, as other shapes bring, one of a whole step.
    Costs a third more than `paged_attention_cpu` at 65 rows.
    """
    output = torch.empty_like(query)
    query_bounds = cu_query_lens.tolist()
    for request_index, context_len in enumerate(context_lens.tolist()):
        start, stop = query_bounds[request_index], query_bounds[request_index + 1]
        table = block_tables[request_index]
        output[start:stop] = _attend_tiled(
            query[start:stop],
            gather_context(key_cache, table, context_len),
            gather_context(value_cache, table, context_len),
            first_position=context_len - (stop - start),
            scale=scale,
        )
    output[query_bounds[-1] :] = 0
    return output


def _attend_tiled(
    query: Tensor, keys: Tensor, values: Tensor, *, first_position: int, scale: float
) -> Tensor:
    """Rows [num_rows, num_heads, head_dim] from `first_position` on, chunk by chunk.

    keys, values: [num_kv_heads, context_len, head_dim]
    """
    num_rows = query.shape[0]
    fill = -num_rows % _ROW_TILE
    rows = functional.pad(query, (0, 0, 0, 0, 0, fill)).transpose(0, 1)  # [heads, tiled_rows, d]
    chunks = [
        _attend_chunk(
            rows,
            _fill_up(keys[:, start : start + _CHUNK_LEN]),
            _fill_up(values[:, start : start + _CHUNK_LEN]),
            first_position=first_position - start,
            scale=scale,
        )
        for start in range(0, keys.shape[1], _CHUNK_LEN)
    ]
    log_sums = torch.stack([log_sum for _, log_sum in chunks])
    weights = (log_sums - log_sums.amax(dim=0)).exp_()[..., None]
    # One chunk after the other: those that a row does not see add exactly nothing.
    total, norm = chunks[0][0] * weights[0], weights[0].clone()
    for (attended, _), weight in zip(chunks[1:], weights[1:], strict=True):
        total.addcmul_(attended, weight)
        norm += weight
    return (total / norm)[:, :num_rows].transpose(0, 1)


def _attend_chunk(
    rows: Tensor, keys: Tensor, values: Tensor, *, first_position: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Attention over one chunk, and the logarithms of its sums [num_heads, num_rows].

    `first_position` is that of the first row, counted from the chunk's first key.
    """
    num_heads, num_rows, head_dim = rows.shape
    num_kv_heads, chunk_len, _ = keys.shape
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    if chunk_len <= first_position + 1:
        # Every row sees it all, so the heads of a group can stand as rows.
        grouped = rows.reshape(1, num_kv_heads, -1, head_dim)
        attended, log_sums = attend(grouped, keys[None], values[None], 0.0, False, scale=scale)
        return attended.reshape(rows.shape), log_sums.reshape(num_heads, num_rows)
    positions = torch.arange(first_position, first_position + num_rows)[:, None]
    is_hidden = torch.arange(chunk_len)[None] > positions
    mask = torch.zeros(is_hidden.shape, dtype=rows.dtype).masked_fill_(is_hidden, float("-inf"))
    # Rows before the chunk see nothing of it; a softmax over nothing would be no number.
    is_before = positions[:, 0] < 0
    mask[is_before] = 0
    attended, log_sums = attend(
        rows[None], keys[None], values[None], 0.0, False, attn_mask=mask, scale=scale
    )
    return attended[0], log_sums[0].masked_fill(is_before, float("-inf"))


def _fill_up(chunk: Tensor) -> Tensor:
    """A chunk [num_kv_heads, chunk_len, head_dim], with zeros up to a whole tile."""
    fill = -chunk.shape[1] % _CONTEXT_TILE
    return functional.pad(chunk, (0, 0, 0, fill)) if fill else chunk
