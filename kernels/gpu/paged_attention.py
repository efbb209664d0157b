"""Paged attention in one kernel for prefill chunks, verification and decoding.

Programs walk a list of items that the host has made (`kernels.attention_work`), so none is without
work. An item reads its keys and values once for all of its rows, and for all heads that share them.
Where a tile has an item for each split, a second kernel merges the parts: what a row gets depends
on its context alone, not on how much runs beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.attention_work import LINE_SIZE, SPLIT_SIZE, AttentionHeads, AttentionWork

_MERGED_ROWS = 16  # rows of a tile that one program of the second kernel merges
_MIN_BLOCK = 16  # the smallest side of a matrix product on tensor cores
# More programs than any device has at once; each goes on to further items.
_MAX_PROGRAMS = 2048
# Enough for the smallest tiles; left alone, the assembler takes fewer and spills.
_MAX_REGISTERS = 168
_LOG2_E = 1.4426950408889634


def paged_attention_triton(
    query: Tensor,
    *,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    cu_query_lens: Tensor,
    context_lens: Tensor,
    scale: float,
    work: AttentionWork | None = None,
    split_size: int = SPLIT_SIZE,
) -> Tensor:
    """Do as `paged_attention_reference`; the last dimension of `query` must be contiguous.

    A request without rows and with a context of 0 is padding too. Without `work` the lists are made
    here, which waits for the device. `split_size` is for tests; lists are made for one size.
    """
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    assert query.stride(2) == 1
    assert key_cache.is_contiguous()
    assert value_cache.is_contiguous()
    assert block_tables.stride(1) == 1
    if work is None:
        work = AttentionWork.plan(
            cu_query_lens.cpu().diff().numpy(),
            context_lens.cpu().numpy(),
            num_tokens=num_tokens,
            table_width=block_tables.stride(0),
            heads=AttentionHeads(
                num_groups=num_heads // num_kv_heads,
                num_kv_heads=num_kv_heads,
                head_dim=head_dim,
            ),
            split_size=split_size,
        ).to(query.device)
    limits = work.limits
    output = torch.empty((num_tokens, num_heads, head_dim), dtype=query.dtype, device=query.device)
    partials = _Partials.allocate(query, work, num_kv_heads=num_kv_heads)
    head_block = max(_MIN_BLOCK, triton.next_power_of_2(head_dim))
    tile = _Tile.on(query.device, head_bytes=head_block * query.dtype.itemsize)
    block_n = min(tile.block_n, split_size)
    assert split_size % block_n == 0, "blocks without a mask must end with their split"
    max_programs = max(1, _MAX_PROGRAMS // num_kv_heads)
    _attend[(min(limits.max_items, max_programs), num_kv_heads)](
        query,
        key_cache,
        value_cache,
        output,
        partials.sums,
        partials.maxima,
        partials.totals,
        block_tables,
        work.items,
        work.counts,
        scale * _LOG2_E,
        query.stride(0),
        query.stride(1),
        NUM_KV_HEADS=num_kv_heads,
        NUM_GROUPS=num_heads // num_kv_heads,
        HEAD_DIM=head_dim,
        HEAD_BLOCK=head_block,
        KV_BLOCK_SIZE=block_size,
        SPLIT_SIZE=split_size,
        LINE_SIZE=LINE_SIZE,
        BLOCK_M=limits.block_m,
        BLOCK_N=block_n,
        num_warps=tile.num_warps if limits.block_m > _MIN_BLOCK else 4,
        num_stages=2 if query.dtype.itemsize == 2 else 1,  # float32 would not fit twice
        maxnreg=None if limits.block_m >= 64 else _MAX_REGISTERS,
    )
    if limits.max_merges:
        merge_grid = (min(limits.max_merges, max_programs), num_kv_heads)
        _merge_splits[(*merge_grid, limits.block_m // _MERGED_ROWS)](
            partials.sums,
            partials.maxima,
            partials.totals,
            output,
            work.merges,
            work.counts,
            NUM_KV_HEADS=num_kv_heads,
            NUM_GROUPS=num_heads // num_kv_heads,
            HEAD_DIM=head_dim,
            HEAD_BLOCK=head_block,
            LINE_SIZE=LINE_SIZE,
            BLOCK_M=limits.block_m,
            ROWS=_MERGED_ROWS,
            num_warps=2,
        )
    return output


@dataclass(frozen=True, slots=True)
class _Tile:
    """What suits a device, measured on 9.0 (`benchmarks gpu`) and free of spills on all.

    block_n: positions that a program takes at once, by the size of a head alone: another one would
    sum in another order; num_warps: of a program with many rows
    """

    block_n: int
    num_warps: int

    @classmethod
    def on(cls, device: torch.device, *, head_bytes: int) -> _Tile:
        if capability_of(device) >= (9, 0):
            return cls(block_n=64 if head_bytes <= 256 else 32, num_warps=4)
        return cls(block_n=64 if head_bytes <= 128 else 32, num_warps=8)


@cache
def capability_of(device: torch.device) -> tuple[int, int]:
    """The compute capability of a GPU; of the newest that was tried where there is none."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else (9, 0)


@dataclass(frozen=True, slots=True)
class _Partials:
    """The parts of tiles for the second kernel, float32; empty where no tile has parts.

    sums: [num_slots, num_kv_heads, block_m, head_dim], values weighted relative to the maximum
    maxima, totals: [num_slots, num_kv_heads, block_m], of the scores in base 2 and their weights
    """

    sums: Tensor
    maxima: Tensor
    totals: Tensor

    @classmethod
    def allocate(cls, query: Tensor, work: AttentionWork, *, num_kv_heads: int) -> _Partials:
        shape = (work.limits.num_slots, num_kv_heads, work.limits.block_m)

        def empty(*dims: int) -> Tensor:
            return torch.empty(dims, dtype=torch.float32, device=query.device)

        return cls(empty(*shape, query.shape[2]), empty(*shape), empty(*shape))


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
def _attend_keys(
    query,
    part_sums,
    part_maximum,
    part_total,
    key_cache_ptr,
    value_cache_ptr,
    table_ptr,
    start,
    stop,
    positions,
    kv_head,
    scale_log2,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_BLOCK: tl.constexpr,
    KV_BLOCK_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    IS_SEEN_BY_ALL: tl.constexpr,
):
    """Take the next BLOCK_N positions into a partial softmax.

    Those that every row sees (IS_SEEN_BY_ALL) need no mask.
    """
    dims = tl.arange(0, HEAD_BLOCK)
    keys_at = start + tl.arange(0, BLOCK_N)
    is_key = keys_at < stop
    is_read = is_key[:, None] & (dims < HEAD_DIM)[None, :]
    if IS_SEEN_BY_ALL:
        blocks = tl.load(table_ptr + keys_at // KV_BLOCK_SIZE)
    else:
        blocks = tl.load(table_ptr + keys_at // KV_BLOCK_SIZE, mask=is_key, other=0)
    slots = blocks.to(tl.int64) * KV_BLOCK_SIZE + keys_at % KV_BLOCK_SIZE
    offsets = ((slots * NUM_KV_HEADS + kv_head) * HEAD_DIM)[:, None] + dims[None, :]
    if IS_SEEN_BY_ALL and HEAD_DIM == HEAD_BLOCK:
        key = tl.load(key_cache_ptr + offsets)
        value = tl.load(value_cache_ptr + offsets)
    else:
        key = tl.load(key_cache_ptr + offsets, mask=is_read, other=0.0)
        value = tl.load(value_cache_ptr + offsets, mask=is_read, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision="ieee")
    if not IS_SEEN_BY_ALL:
        is_seen = is_key[None, :] & (keys_at[None, :] <= positions[:, None])
        scores = tl.where(is_seen, scores, float("-inf"))
    new_maximum = tl.maximum(part_maximum, tl.max(scores, 1) * scale_log2)
    finite = tl.where(new_maximum == float("-inf"), 0.0, new_maximum)
    weights = tl.exp2(scores * scale_log2 - finite[:, None])
    decay = tl.exp2(part_maximum - finite)
    part_total = part_total * decay + tl.sum(weights, 1)
    part_sums = part_sums * decay[:, None]
    part_sums = tl.dot(weights.to(value.dtype), value, part_sums, input_precision="ieee")
    return part_sums, new_maximum, part_total


@triton.jit
def _attend(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    output_ptr,
    sums_ptr,
    maxima_ptr,
    totals_ptr,
    block_tables_ptr,
    items_ptr,
    counts_ptr,
    scale_log2,
    query_token_stride,
    query_head_stride,
    NUM_KV_HEADS: tl.constexpr,
    NUM_GROUPS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_BLOCK: tl.constexpr,
    KV_BLOCK_SIZE: tl.constexpr,
    SPLIT_SIZE: tl.constexpr,
    LINE_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    kv_head = tl.program_id(1)
    num_items = tl.load(counts_ptr)
    dims = tl.arange(0, HEAD_BLOCK)
    is_dim = dims < HEAD_DIM
    for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
        line = items_ptr + item * LINE_SIZE
        table_ptr = block_tables_ptr + tl.load(line)
        first_token = tl.load(line + 1)
        first_position = tl.load(line + 2)
        first_row = tl.load(line + 3)
        num_rows = tl.load(line + 4)
        split = tl.load(line + 5)
        slot = tl.load(line + 6)
        # (query token, head of the group), the latter inner
        rows = first_row + tl.arange(0, BLOCK_M)
        is_row = rows < num_rows
        tokens = first_token + rows // NUM_GROUPS
        heads = kv_head * NUM_GROUPS + rows % NUM_GROUPS
        positions = first_position + rows // NUM_GROUPS
        last_row = tl.minimum(first_row + BLOCK_M, num_rows) - 1
        visible_len = tl.maximum(first_position + last_row // NUM_GROUPS + 1, 0)
        seen_by_all = tl.maximum(first_position + first_row // NUM_GROUPS + 1, 0)
        is_whole = split < 0
        first_split = tl.where(is_whole, 0, split)
        stop_split = tl.where(is_whole, (visible_len + SPLIT_SIZE - 1) // SPLIT_SIZE, split + 1)

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
        for at in range(first_split, stop_split):
            part_sums = tl.zeros([BLOCK_M, HEAD_BLOCK], dtype=tl.float32)
            part_maximum = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
            part_total = tl.zeros([BLOCK_M], dtype=tl.float32)
            split_start = at * SPLIT_SIZE
            split_stop = tl.minimum(split_start + SPLIT_SIZE, visible_len)
            border = tl.minimum(seen_by_all, split_stop) // BLOCK_N * BLOCK_N
            border = tl.maximum(border, split_start)
            for start in range(split_start, border, BLOCK_N):
                part_sums, part_maximum, part_total = _attend_keys(
                    query,
                    part_sums,
                    part_maximum,
                    part_total,
                    key_cache_ptr,
                    value_cache_ptr,
                    table_ptr,
                    start,
                    split_stop,
                    positions,
                    kv_head,
                    scale_log2,
                    NUM_KV_HEADS,
                    HEAD_DIM,
                    HEAD_BLOCK,
                    KV_BLOCK_SIZE,
                    BLOCK_N,
                    IS_SEEN_BY_ALL=True,
                )
            for start in range(border, split_stop, BLOCK_N):
                part_sums, part_maximum, part_total = _attend_keys(
                    query,
                    part_sums,
                    part_maximum,
                    part_total,
                    key_cache_ptr,
                    value_cache_ptr,
                    table_ptr,
                    start,
                    split_stop,
                    positions,
                    kv_head,
                    scale_log2,
                    NUM_KV_HEADS,
                    HEAD_DIM,
                    HEAD_BLOCK,
                    KV_BLOCK_SIZE,
                    BLOCK_N,
                    IS_SEEN_BY_ALL=False,
                )
            sums, maximum, total = _merge(sums, maximum, total, part_sums, part_maximum, part_total)

        # Read again: kept all the while, they would cost registers that the sums need.
        rows = tl.load(line + 3) + tl.arange(0, BLOCK_M)
        is_loaded = (rows < tl.load(line + 4))[:, None] & is_dim[None, :]
        if is_whole:
            tokens = tl.load(line + 1) + rows // NUM_GROUPS
            heads = kv_head * NUM_GROUPS + rows % NUM_GROUPS
            flat_rows = tokens.to(tl.int64) * (NUM_KV_HEADS * NUM_GROUPS) + heads
            sums = sums / tl.where(total == 0.0, 1.0, total)[:, None]
            tl.store(
                output_ptr + flat_rows[:, None] * HEAD_DIM + dims[None, :],
                sums.to(output_ptr.dtype.element_ty),
                mask=is_loaded,
            )
        else:
            part_rows = (slot.to(tl.int64) * NUM_KV_HEADS + kv_head) * BLOCK_M
            part_rows += tl.arange(0, BLOCK_M)
            tl.store(maxima_ptr + part_rows, maximum)
            tl.store(totals_ptr + part_rows, total)
            sums_at = sums_ptr + part_rows[:, None] * HEAD_DIM + dims[None, :]
            tl.store(sums_at, sums, mask=is_loaded)


@triton.jit
def _merge_splits(
    sums_ptr,
    maxima_ptr,
    totals_ptr,
    output_ptr,
    merges_ptr,
    counts_ptr,
    NUM_KV_HEADS: tl.constexpr,
    NUM_GROUPS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_BLOCK: tl.constexpr,
    LINE_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    ROWS: tl.constexpr,
):
    kv_head = tl.program_id(1)
    num_merges = tl.load(counts_ptr + 1)
    in_tile = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, HEAD_BLOCK)
    for at in range(tl.program_id(0), num_merges, tl.num_programs(0)):
        line = merges_ptr + at * LINE_SIZE
        first_token = tl.load(line + 1)
        num_rows = tl.load(line + 4)
        num_parts = tl.load(line + 5)
        first_slot = tl.load(line + 6).to(tl.int64)
        rows = tl.load(line + 3) + in_tile
        is_row = rows < num_rows
        is_loaded = is_row[:, None] & (dims < HEAD_DIM)[None, :]
        sums = tl.zeros([ROWS, HEAD_BLOCK], dtype=tl.float32)
        maximum = tl.full([ROWS], float("-inf"), dtype=tl.float32)
        total = tl.zeros([ROWS], dtype=tl.float32)
        for part in range(num_parts):
            part_rows = ((first_slot + part) * NUM_KV_HEADS + kv_head) * BLOCK_M + in_tile
            sums_at = sums_ptr + part_rows[:, None] * HEAD_DIM + dims[None, :]
            part_sums = tl.load(sums_at, mask=is_loaded, other=0.0)
            part_maximum = tl.load(maxima_ptr + part_rows, mask=is_row, other=float("-inf"))
            part_total = tl.load(totals_ptr + part_rows, mask=is_row, other=0.0)
            sums, maximum, total = _merge(sums, maximum, total, part_sums, part_maximum, part_total)
        sums = sums / tl.where(total == 0.0, 1.0, total)[:, None]
        flat_rows = (first_token + rows // NUM_GROUPS).to(tl.int64) * (NUM_KV_HEADS * NUM_GROUPS)
        flat_rows += kv_head * NUM_GROUPS + rows % NUM_GROUPS
        tl.store(
            output_ptr + flat_rows[:, None] * HEAD_DIM + dims[None, :],
            sums.to(output_ptr.dtype.element_ty),
            mask=is_loaded,
        )
