"""Greedy verification by blocks of the vocabulary: no softmax, no round trip to the host.

A first kernel leaves the largest logit of each row's block and its id, a second one the row's
token, a third one the prefix of drafts that holds. A row with a list of allowed tokens looks at
nothing but its list.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.count_accepted import count_accepted_triton
from kernels.verification import AllowedTokens, Verification

_VOCAB_BLOCK = 4096
_LIST_BLOCK = 128


def greedy_verify_triton(
    logits: Tensor,
    draft_token_ids: Tensor,
    *,
    cu_rows: Tensor,
    allowed: AllowedTokens | None = None,
) -> Verification:
    """Do as `greedy_verify_reference`; rows behind a mismatch hold -1.

    The last dimension of `logits` must be contiguous; they may be in any floating type. Only the
    ids of a list are ever taken, even where all their logits are -inf.
    """
    token_ids = best_of_blocks(logits, allowed)
    return Verification(token_ids, count_accepted_triton(token_ids, draft_token_ids, cu_rows))


def best_of_blocks(logits: Tensor, allowed: AllowedTokens | None = None) -> Tensor:
    """The id [num_rows] int64 of each row's largest logit, or of its list."""
    num_rows, vocab_size = logits.shape
    assert logits.stride(1) == 1
    num_blocks = triton.cdiv(vocab_size, _VOCAB_BLOCK)
    best_logits = torch.empty((num_rows, num_blocks), dtype=torch.float32, device=logits.device)
    best_ids = torch.empty((num_rows, num_blocks), dtype=torch.int64, device=logits.device)
    has_allowed = allowed is not None
    has_prior = allowed is not None and allowed.log_prior is not None
    _find_best_of_blocks[(num_rows, num_blocks)](
        logits,
        allowed.token_ids if allowed is not None else best_ids,
        allowed.cu_lens if allowed is not None else best_ids,
        allowed.log_prior if allowed is not None and has_prior else best_logits,
        best_logits,
        best_ids,
        logits.stride(0),
        vocab_size,
        HAS_ALLOWED=has_allowed,
        HAS_PRIOR=has_prior,
        BLOCK=min(_VOCAB_BLOCK, triton.next_power_of_2(vocab_size)),
        LIST_BLOCK=_LIST_BLOCK,
    )
    return reduce_to_best(best_logits, best_ids)


def reduce_to_best(best_logits: Tensor, best_ids: Tensor) -> Tensor:
    """The id [num_rows] int64 of each row's largest logit; of equal ones the lowest id.

    best_logits: [num_rows, num_blocks] float32; best_ids: [num_rows, num_blocks] int64
    """
    num_rows, num_blocks = best_logits.shape
    token_ids = torch.empty(num_rows, dtype=torch.int64, device=best_ids.device)
    _reduce_blocks[(num_rows,)](
        best_logits,
        best_ids,
        token_ids,
        num_blocks,
        BLOCK=triton.next_power_of_2(num_blocks),
        num_warps=1,
    )
    return token_ids


@triton.jit
def _find_best_of_blocks(
    logits_ptr,
    allowed_ids_ptr,
    allowed_cu_lens_ptr,
    log_prior_ptr,
    best_logits_ptr,
    best_ids_ptr,
    row_stride,
    vocab_size,
    HAS_ALLOWED: tl.constexpr,
    HAS_PRIOR: tl.constexpr,
    BLOCK: tl.constexpr,
    LIST_BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    start = tl.zeros([], dtype=tl.int64)
    stop = tl.zeros([], dtype=tl.int64)
    if HAS_ALLOWED:
        start = tl.load(allowed_cu_lens_ptr + row)
        stop = tl.load(allowed_cu_lens_ptr + row + 1)
    best_logit = tl.full([], float("-inf"), dtype=tl.float32)
    best_id = tl.full([], 2**62, dtype=tl.int64)  # loses against every id
    if start == stop:
        token_ids = block * BLOCK + tl.arange(0, BLOCK)
        is_token = token_ids < vocab_size
        logits = tl.load(
            logits_ptr + row * row_stride + token_ids, mask=is_token, other=float("-inf")
        ).to(tl.float32)
        best_logit = tl.max(logits, 0)
        is_best = is_token & (logits == best_logit)
        best_id = tl.min(tl.where(is_best, token_ids, vocab_size - 1), 0).to(tl.int64)
    elif block == 0:
        for list_start in range(start, stop, LIST_BLOCK):
            entries = list_start + tl.arange(0, LIST_BLOCK)
            is_entry = entries < stop
            token_ids = tl.load(allowed_ids_ptr + entries, mask=is_entry, other=0)
            logits = tl.load(
                logits_ptr + row * row_stride + token_ids, mask=is_entry, other=float("-inf")
            ).to(tl.float32)
            if HAS_PRIOR:
                logits += tl.load(log_prior_ptr + entries, mask=is_entry, other=0.0)
            logit = tl.max(logits, 0)
            token_id = tl.min(tl.where(is_entry & (logits == logit), token_ids, 2**62), 0)
            is_lower = (logit == best_logit) & (token_id < best_id)
            best_id = tl.where((logit > best_logit) | is_lower, token_id, best_id)
            best_logit = tl.maximum(best_logit, logit)
    at = row * tl.num_programs(1) + block
    tl.store(best_logits_ptr + at, best_logit)
    tl.store(best_ids_ptr + at, best_id)


@triton.jit
def _reduce_blocks(best_logits_ptr, best_ids_ptr, token_ids_ptr, num_blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    blocks = tl.arange(0, BLOCK)
    is_block = blocks < num_blocks
    at = row * num_blocks + blocks
    logits = tl.load(best_logits_ptr + at, mask=is_block, other=float("-inf"))
    token_ids = tl.load(best_ids_ptr + at, mask=is_block, other=2**62)
    is_best = logits == tl.max(logits, 0)
    tl.store(token_ids_ptr + row, tl.min(tl.where(is_best, token_ids, 2**62), 0))
