"""Paged attention in one kernel for prefill chunks, verification and decoding.

A tile is up to 128 rows, each of them one query token under one head of a group, so that a tile
reads its keys and values once for all heads that share them. Contexts are cut every `SPLIT_SIZE`
positions. Where there are few tiles, each split is a program of its own and a second pass merges
them; where there are many, a program merges its splits as it goes. Both do the same arithmetic in
the same order: what a row gets depends on its context alone, not on how much runs beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

SPLIT_SIZE = 512
# Sizes from which kernels are compiled: few, so that a new batch does not wait for a compiler.
_BLOCKS_M = (16, 64, 128)
_MIN_REQUEST_BLOCK = 64
_MERGED_HEADS = 8  # heads of a token that one program of the second pass merges
_MIN_BLOCK = 16  # the smallest side of a matrix product on tensor cores
# From here on tiles alone keep the device busy, and partial results would only cost bandwidth.
_MIN_PROGRAMS_WITHOUT_SPLITS = 256
_LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class TilePlan:
    """The tiles of one call; depends on shapes only, so that a captured graph stays right.

    block_m: rows a tile; num_tiles: upper bound over all requests, padding rows included
    num_splits: splits of the longest context that the block tables can hold
    is_parallel: each split is a program of its own
    """

    block_m: int
    num_tiles: int
    num_splits: int
    is_parallel: bool


def plan_tiles(
    *, num_tokens: int, num_requests: int, num_groups: int, num_kv_heads: int, max_context: int
) -> TilePlan:
    """Plan the tiles for `num_tokens` query tokens of `num_requests` requests, padding included."""
    num_rows = num_tokens * num_groups
    # By the rows of all: how they are shared out is known to the device only, and requests that pad
    # a graph would hide a long one.
    block_m = next((size for size in _BLOCKS_M if size >= num_rows), _BLOCKS_M[-1])
    # Each request, and the padding behind the last one, may leave one tile partly filled.
    num_tiles = num_rows // block_m + num_requests + 1
    num_splits = -(-max_context // SPLIT_SIZE)
    num_full_tiles = -(-num_rows // block_m)
    is_busy = num_full_tiles * num_kv_heads >= _MIN_PROGRAMS_WITHOUT_SPLITS
    return TilePlan(block_m, num_tiles, num_splits, num_splits > 1 and not is_busy)


def paged_attention_triton(
    query: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    cu_query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """Do as `paged_attention_reference`; the last dimension of `query` must be contiguous.

    A request without rows and with a context of 0 is padding too.
    """
    num_tokens, num_heads, _ = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    tiles = plan_tiles(
        num_tokens=num_tokens,
        num_requests=context_lens.shape[0],
        num_groups=num_heads // num_kv_heads,
        num_kv_heads=num_kv_heads,
        max_context=block_tables.shape[1] * block_size,
    )
    return attend_tiles(
        query,
        tiles=tiles,
        key_cache=key_cache,
        value_cache=value_cache,
        block_tables=block_tables,
        cu_query_lens=cu_query_lens,
        context_lens=context_lens,
        scale=scale,
    )


def attend_tiles(
    query: Tensor,
    *,
    tiles: TilePlan,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    cu_query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
    split_size: int = SPLIT_SIZE,
) -> Tensor:
    """Do as `paged_attention_triton` under a given plan, with splits of `split_size` positions."""
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    assert query.stride(2) == 1
    assert key_cache.is_contiguous()
    assert value_cache.is_contiguous()
    assert block_tables.stride(1) == 1
    num_requests = context_lens.shape[0]
    output = torch.empty((num_tokens, num_heads, head_dim), dtype=query.dtype, device=query.device)
    num_parts = tiles.num_splits if tiles.is_parallel else 1
    partials = _Partials.allocate(query, num_parts=num_parts if tiles.is_parallel else 0)
    head_block = max(_MIN_BLOCK, triton.next_power_of_2(head_dim))
    request_block = max(_MIN_REQUEST_BLOCK, triton.next_power_of_2(num_requests + 1))
    _attend[(tiles.num_tiles, num_kv_heads, num_parts)](
        query,
        key_cache,
        value_cache,
        output,
        partials.sums,
        partials.maxima,
        partials.totals,
        block_tables,
        cu_query_lens,
        context_lens,
        scale * _LOG2_E,
        num_tokens,
        num_requests,
        block_tables.stride(0),
        query.stride(0),
        query.stride(1),
        num_parts,
        NUM_KV_HEADS=num_kv_heads,
        NUM_GROUPS=num_heads // num_kv_heads,
        HEAD_DIM=head_dim,
        HEAD_BLOCK=head_block,
        KV_BLOCK_SIZE=block_size,
        SPLIT_SIZE=split_size,
        IS_PARALLEL=tiles.is_parallel,
        REQUEST_BLOCK=request_block,
        BLOCK_M=tiles.block_m,
        BLOCK_N=min(64, split_size),
        num_warps=8 if tiles.block_m >= 128 else 4,
        num_stages=2 if query.dtype.itemsize == 2 else 1,  # float32 would not fit twice
    )
    if tiles.is_parallel:
        heads_block = min(_MERGED_HEADS, triton.next_power_of_2(num_heads))
        _merge_splits[(num_tokens, triton.cdiv(num_heads, heads_block))](
            partials.sums,
            partials.maxima,
            partials.totals,
            output,
            cu_query_lens,
            context_lens,
            num_requests,
            num_parts,
            NUM_HEADS=num_heads,
            HEAD_DIM=head_dim,
            HEAD_BLOCK=head_block,
            SPLIT_SIZE=split_size,
            REQUEST_BLOCK=request_block,
            HEADS_BLOCK=heads_block,
            num_warps=2,
        )
    return output


@dataclass(frozen=True, slots=True)
class _Partials:
    """The results of each split for the second pass, float32; empty without a second pass.

    sums: [num_tokens, num_heads, num_parts, head_dim], values weighted relative to the maximum
    maxima, totals: [num_tokens, num_heads, num_parts], of the scores in base 2 and their weights
    """

    sums: Tensor
    maxima: Tensor
    totals: Tensor

    @classmethod
    def allocate(cls, query: Tensor, *, num_parts: int) -> _Partials:
        num_tokens, num_heads, head_dim = query.shape
        shape = (num_tokens, num_heads, num_parts)

        def empty(*dims: int) -> Tensor:
            return torch.empty(dims, dtype=torch.float32, device=query.device)

        return cls(empty(*shape, head_dim), empty(*shape), empty(*shape))


@triton.jit
def _merge(sums, maximum, total, part_sums, part_maximum, part_total):
    """Merge two partial softmaxes into one; the parts may be empty (maximum -inf)."""
    merged = tl.maximum(maximum, part_maximum)
    finite = tl.where(merged == float("-inf"), 0.0, merged)
    weight = tl.exp2(maximum - finite)
    part_weight = tl.exp2(part_maximum - finite)
    return (
        sums * weight[:, None] + part_sums * part_weight[:, None],
        merged,
        total * weight + part_total * part_weight,
    )


@triton.jit
def _find_owner(index, cu_query_lens_ptr, num_requests, SCALE, DIVISOR, SLACK, BLOCK: tl.constexpr):
    """The last request whose first tile (or row) is not behind `index`; one load, no loop.

    Request i starts at cu_query_lens[i] * SCALE // DIVISOR + i * SLACK. The padding behind the
    last request counts as a request.
    """
    requests = tl.arange(0, BLOCK)
    is_inside = requests <= num_requests
    starts = tl.load(cu_query_lens_ptr + requests, mask=is_inside, other=0)
    starts = starts * SCALE // DIVISOR + requests * SLACK
    return tl.sum(tl.where(is_inside & (starts <= index), 1, 0)) - 1


@triton.jit(do_not_specialize=["num_tokens", "num_requests", "table_stride", "num_parts"])
def _attend(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    output_ptr,
    sums_ptr,
    maxima_ptr,
    totals_ptr,
    block_tables_ptr,
    cu_query_lens_ptr,
    context_lens_ptr,
    scale_log2,
    num_tokens,
    num_requests,
    table_stride,
    query_token_stride,
    query_head_stride,
    num_parts,
    NUM_KV_HEADS: tl.constexpr,
    NUM_GROUPS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_BLOCK: tl.constexpr,
    KV_BLOCK_SIZE: tl.constexpr,
    SPLIT_SIZE: tl.constexpr,
    IS_PARALLEL: tl.constexpr,
    REQUEST_BLOCK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # Tiles of the same split follow each other, so that its keys and values are in the L2 cache.
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    part = tl.program_id(2)
    owner = _find_owner(
        tile, cu_query_lens_ptr, num_requests, NUM_GROUPS, BLOCK_M, 1, REQUEST_BLOCK
    )
    is_padding = owner == num_requests
    first_token = tl.load(cu_query_lens_ptr + owner)
    stop_token = num_tokens
    context_len = 0
    if owner < num_requests:
        stop_token = tl.load(cu_query_lens_ptr + owner + 1)
        context_len = tl.load(context_lens_ptr + owner)
    first_row = (tile - (first_token * NUM_GROUPS // BLOCK_M + owner)) * BLOCK_M
    num_rows = (stop_token - first_token) * NUM_GROUPS
    if first_row >= num_rows:
        return
    rows = first_row + tl.arange(0, BLOCK_M)  # (query token, head of the group), the latter inner
    is_row = rows < num_rows
    tokens = first_token + rows // NUM_GROUPS
    heads = kv_head * NUM_GROUPS + rows % NUM_GROUPS
    positions = context_len - (stop_token - first_token) + rows // NUM_GROUPS
    last_row = tl.minimum(first_row + BLOCK_M, num_rows) - 1
    visible_len = context_len - (stop_token - first_token) + last_row // NUM_GROUPS + 1
    if is_padding:
        visible_len = 0
    first_split = 0
    stop_split = (visible_len + SPLIT_SIZE - 1) // SPLIT_SIZE
    if IS_PARALLEL:
        if part >= stop_split:
            return
        first_split = part
        stop_split = part + 1

    dims = tl.arange(0, HEAD_BLOCK)
    is_dim = dims < HEAD_DIM
    is_loaded = is_row[:, None] & is_dim[None, :]
    query = tl.load(
        query_ptr
        + tokens.to(tl.int64)[:, None] * query_token_stride
        + heads[:, None] * query_head_stride
        + dims[None, :],
        mask=is_loaded,
        other=0.0,
    )
    sums = tl.zeros([BLOCK_M, HEAD_BLOCK], dtype=tl.float32)
    maximum = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    for split in range(first_split, stop_split):
        part_sums = tl.zeros([BLOCK_M, HEAD_BLOCK], dtype=tl.float32)
        part_maximum = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
        part_total = tl.zeros([BLOCK_M], dtype=tl.float32)
        split_stop = tl.minimum((split + 1) * SPLIT_SIZE, visible_len)
        for start in range(split * SPLIT_SIZE, split_stop, BLOCK_N):
            keys_at = start + tl.arange(0, BLOCK_N)
            is_key = keys_at < split_stop
            blocks = tl.load(
                block_tables_ptr + owner.to(tl.int64) * table_stride + keys_at // KV_BLOCK_SIZE,
                mask=is_key,
                other=0,
            )
            slots = blocks.to(tl.int64) * KV_BLOCK_SIZE + keys_at % KV_BLOCK_SIZE
            offsets = ((slots * NUM_KV_HEADS + kv_head) * HEAD_DIM)[:, None] + dims[None, :]
            is_read = is_key[:, None] & is_dim[None, :]
            key = tl.load(key_cache_ptr + offsets, mask=is_read, other=0.0)
            value = tl.load(value_cache_ptr + offsets, mask=is_read, other=0.0)
            scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale_log2
            is_seen = is_key[None, :] & (keys_at[None, :] <= positions[:, None])
            scores = tl.where(is_seen, scores, float("-inf"))
            new_maximum = tl.maximum(part_maximum, tl.max(scores, 1))
            finite = tl.where(new_maximum == float("-inf"), 0.0, new_maximum)
            weights = tl.exp2(scores - finite[:, None])
            decay = tl.exp2(part_maximum - finite)
            part_total = part_total * decay + tl.sum(weights, 1)
            part_sums = part_sums * decay[:, None]
            part_sums += tl.dot(weights.to(value.dtype), value, input_precision="ieee")
            part_maximum = new_maximum
        sums, maximum, total = _merge(sums, maximum, total, part_sums, part_maximum, part_total)

    flat_rows = tokens.to(tl.int64) * (NUM_KV_HEADS * NUM_GROUPS) + heads
    if IS_PARALLEL:
        part_rows = flat_rows * num_parts + part
        tl.store(maxima_ptr + part_rows, maximum, mask=is_row)
        tl.store(totals_ptr + part_rows, total, mask=is_row)
        tl.store(sums_ptr + part_rows[:, None] * HEAD_DIM + dims[None, :], sums, mask=is_loaded)
    else:
        sums = sums / tl.where(total == 0.0, 1.0, total)[:, None]
        tl.store(
            output_ptr + flat_rows[:, None] * HEAD_DIM + dims[None, :],
            sums.to(output_ptr.dtype.element_ty),
            mask=is_loaded,
        )


@triton.jit(do_not_specialize=["num_requests", "num_splits"])
def _merge_splits(
    sums_ptr,
    maxima_ptr,
    totals_ptr,
    output_ptr,
    cu_query_lens_ptr,
    context_lens_ptr,
    num_requests,
    num_splits,
    NUM_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_BLOCK: tl.constexpr,
    SPLIT_SIZE: tl.constexpr,
    REQUEST_BLOCK: tl.constexpr,
    HEADS_BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    owner = _find_owner(token, cu_query_lens_ptr, num_requests, 1, 1, 0, REQUEST_BLOCK)
    num_parts = 0  # for padding
    if owner < num_requests:
        stop_token = tl.load(cu_query_lens_ptr + owner + 1)
        context_len = tl.load(context_lens_ptr + owner)
        num_parts = (context_len - stop_token + token) // SPLIT_SIZE + 1
    heads = tl.program_id(1) * HEADS_BLOCK + tl.arange(0, HEADS_BLOCK)
    is_head = heads < NUM_HEADS
    flat_rows = token.to(tl.int64) * NUM_HEADS + heads
    dims = tl.arange(0, HEAD_BLOCK)
    is_loaded = is_head[:, None] & (dims < HEAD_DIM)[None, :]
    sums = tl.zeros([HEADS_BLOCK, HEAD_BLOCK], dtype=tl.float32)
    maximum = tl.full([HEADS_BLOCK], float("-inf"), dtype=tl.float32)
    total = tl.zeros([HEADS_BLOCK], dtype=tl.float32)
    for part in range(num_parts):
        part_rows = flat_rows * num_splits + part
        part_sums = tl.load(
            sums_ptr + part_rows[:, None] * HEAD_DIM + dims[None, :], mask=is_loaded, other=0.0
        )
        part_maximum = tl.load(maxima_ptr + part_rows, mask=is_head, other=float("-inf"))
        part_total = tl.load(totals_ptr + part_rows, mask=is_head, other=0.0)
        sums, maximum, total = _merge(sums, maximum, total, part_sums, part_maximum, part_total)
    sums = sums / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(
        output_ptr + flat_rows[:, None] * HEAD_DIM + dims[None, :],
        sums.to(output_ptr.dtype.element_ty),
        mask=is_loaded,
    )
