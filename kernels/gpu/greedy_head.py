"""The language model's head and its argmax as one operation.

Few rows are computed in one kernel, and the logits are never written: a program multiplies a tile
of rows with a block of the vocabulary and stores the largest logit of each row and its id; the rest
is done as in `greedy_verify`. Logits are rounded as a matrix library would write them, so that ties
fall the same way. Many rows go to that library, some at a time, so that their logits take little
memory.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.count_accepted import count_accepted_triton
from kernels.gpu.greedy_verify import best_of_blocks, reduce_to_best
from kernels.verification import Verification

# Sizes from which the kernel is compiled; the smallest one is the least that tensor cores take.
_BLOCKS_M = (16, 64, 128)
_BLOCK_N = 128
# Rows whose logits are written at once: 311 MB of a vocabulary of 152,064 in two bytes.
_ROWS_AT_ONCE = 1024


def greedy_head_triton(
    hidden: Tensor,
    weight: Tensor,
    draft_token_ids: Tensor,
    *,
    cu_rows: Tensor,
    writes_logits: bool = False,
) -> Verification:
    """Do as `greedy_head_reference`; rows behind a mismatch hold -1.

    The last dimensions of `hidden` and `weight` must be contiguous. With `writes_logits` a matrix
    library multiplies.
    """
    assert hidden.stride(1) == weight.stride(1) == 1
    assert hidden.dtype == weight.dtype
    find_best = _best_of_logits if writes_logits else _best_of_products
    token_ids = find_best(hidden, weight)
    return Verification(token_ids, count_accepted_triton(token_ids, draft_token_ids, cu_rows))


def _best_of_logits(hidden: Tensor, weight: Tensor) -> Tensor:
    """The id [num_rows] int64 of each row's largest logit."""
    parts = [best_of_blocks(part @ weight.T) for part in hidden.split(_ROWS_AT_ONCE)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _best_of_products(hidden: Tensor, weight: Tensor) -> Tensor:
    """The same, without logits."""
    num_rows, hidden_size = hidden.shape
    vocab_size = weight.shape[0]
    is_half = hidden.dtype.itemsize == 2
    block_m = next((size for size in _BLOCKS_M if size >= num_rows), _BLOCKS_M[-1])
    num_blocks = triton.cdiv(vocab_size, _BLOCK_N)
    best_logits = torch.empty((num_rows, num_blocks), dtype=torch.float32, device=hidden.device)
    best_ids = torch.empty((num_rows, num_blocks), dtype=torch.int64, device=hidden.device)
    # Tiles of rows follow each other, so that their block of weights is in the L2 cache.
    _find_best_of_products[(triton.cdiv(num_rows, block_m), num_blocks)](
        hidden,
        weight,
        best_logits,
        best_ids,
        num_rows,
        vocab_size,
        hidden.stride(0),
        weight.stride(0),
        HIDDEN_SIZE=hidden_size,
        BLOCK_M=block_m,
        BLOCK_N=_BLOCK_N,
        BLOCK_K=64 if is_half else 32,
        num_warps=8 if block_m >= 128 else 4,
        num_stages=3 if is_half else 2,
    )
    return reduce_to_best(best_logits, best_ids)


@triton.jit(do_not_specialize=["num_rows"])
def _find_best_of_products(
    hidden_ptr,
    weight_ptr,
    best_logits_ptr,
    best_ids_ptr,
    num_rows,
    vocab_size,
    hidden_stride,
    weight_stride,
    HIDDEN_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    block = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    token_ids = block * BLOCK_N + tl.arange(0, BLOCK_N)
    is_row = rows < num_rows
    is_token = token_ids < vocab_size
    hidden_at = hidden_ptr + rows.to(tl.int64)[:, None] * hidden_stride
    weight_at = weight_ptr + token_ids.to(tl.int64)[:, None] * weight_stride
    sums = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, HIDDEN_SIZE, BLOCK_K):
        columns = start + tl.arange(0, BLOCK_K)
        is_column = (columns < HIDDEN_SIZE)[None, :]
        hidden = tl.load(hidden_at + columns[None, :], mask=is_row[:, None] & is_column, other=0.0)
        weight = tl.load(
            weight_at + columns[None, :], mask=is_token[:, None] & is_column, other=0.0
        )
        sums += tl.dot(hidden, tl.trans(weight), input_precision="ieee")
    logits = sums.to(hidden_ptr.dtype.element_ty).to(tl.float32)
    logits = tl.where(is_token[None, :], logits, float("-inf"))
    best_logits = tl.max(logits, 1)
    is_best = is_token[None, :] & (logits == best_logits[:, None])
    best_ids = tl.min(tl.where(is_best, token_ids[None, :], vocab_size - 1), 1)
    at = rows.to(tl.int64) * tl.num_programs(1) + block
    tl.store(best_logits_ptr + at, best_logits, mask=is_row)
    tl.store(best_ids_ptr + at, best_ids.to(tl.int64), mask=is_row)
