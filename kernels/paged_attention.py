"""Causal grouped-query attention of ragged query rows over a paged key-value cache."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.attention_work import AttentionWork
from kernels.row_grouping import RowGrouping
from kernels.stacked_attention import attend_stacked
from kernels.tiled_attention import attend_tiled


def paged_attention_reference(
    query: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    cu_query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
    work: AttentionWork | None = None,
) -> Tensor:
    """Attention output [num_tokens, num_heads, head_dim], in the dtype of `query`.

    Request i owns the rows cu_query_lens[i]:cu_query_lens[i + 1]. They are the last tokens of its
    context: row j of n stands at position context_lens[i] - n + j and sees every position up to its
    own. All keys and values, the rows' own included, are in the cache already. Rows behind the last
    request are padding and come back as zeros. Computed in float32.

    query: [num_tokens, num_heads, head_dim]
    key_cache, value_cache: [num_blocks, block_size, num_kv_heads, head_dim]
    block_tables: [num_requests, max_blocks] int32; entries behind the context are not read
    cu_query_lens: [num_requests + 1] int32
    context_lens: [num_requests] int32
    work: the lists of these requests for kernels that walk them; not read here
    """
    del work
    output = torch.zeros_like(query)
    num_groups = query.shape[1] // key_cache.shape[2]
    block_size = key_cache.shape[1]
    for request_index, context_len in enumerate(context_lens.tolist()):
        start, stop = cu_query_lens[request_index : request_index + 2].tolist()
        positions = torch.arange(context_len, device=query.device)
        blocks = block_tables[request_index, positions // block_size].long()
        keys = key_cache[blocks, positions % block_size].float()  # [context, kv_heads, head_dim]
        values = value_cache[blocks, positions % block_size].float()
        keys = keys.repeat_interleave(num_groups, dim=1)
        values = values.repeat_interleave(num_groups, dim=1)
        scores = torch.einsum("qhd,khd->hqk", query[start:stop].float(), keys) * scale
        row_positions = positions[context_len - (stop - start) :]
        scores.masked_fill_(positions[None, :] > row_positions[:, None], float("-inf"))
        attended = torch.einsum("hqk,khd->qhd", scores.softmax(dim=-1), values)
        output[start:stop] = attended.to(query.dtype)
    return output


def paged_attention_cpu(
    query: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    cu_query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
    work: AttentionWork | None = None,
    grouping: RowGrouping = RowGrouping.ALL,
) -> Tensor:
    """Do as `paged_attention_reference`, faster: K and V are neither repeated nor upcast.

    A context in consecutive blocks, which is what an unfragmented pool hands out, is read in place.
    A row has the same bits in any batch and in every context that begins with its own, as far as
    `grouping` ensures it on this processor.
    """
    del work
    output = torch.empty_like(query)
    query_bounds = cu_query_lens.tolist()
    attend = attend_stacked if has_stacked_attention(query.dtype) else attend_tiled
    for request_index, context_len in enumerate(context_lens.tolist()):
        start, stop = query_bounds[request_index], query_bounds[request_index + 1]
        table = block_tables[request_index]
        output[start:stop] = attend(
            query[start:stop],
            gather_context(key_cache, table, context_len),
            gather_context(value_cache, table, context_len),
            scale=scale,
            grouping=grouping,
        )
    output[query_bounds[-1] :] = 0
    return output


def has_stacked_attention(dtype: torch.dtype) -> bool:
    """True if oneDNN's faster products are there: in bfloat16, where torch has it."""
    return dtype == torch.bfloat16 and bool(
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )


def gather_context(cache: Tensor, table: Tensor, context_len: int) -> Tensor:
    """Cached rows [num_kv_heads, context_len, head_dim]; a view if the blocks are consecutive."""
    block_size = cache.shape[1]
    blocks = table[: -(-context_len // block_size)].tolist()
    first = blocks[0]
    if blocks == list(range(first, first + len(blocks))):
        rows = cache.view(-1, *cache.shape[2:])[first * block_size :][:context_len]
    else:
        # index_select copies whole blocks; indexing would copy number by number.
        rows = cache.index_select(0, table[: len(blocks)]).flatten(0, 1)[:context_len]
    return rows.transpose(0, 1)
