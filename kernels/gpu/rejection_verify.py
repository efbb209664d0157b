"""Sampled verification without sorting: thresholds by bisection over the bits of probabilities.

One program draws the token of one row. Probabilities are kept in a workspace, because every pass
over them reads what the first one wrote. The lowest probability kept by top-k or top-p is found by
halving the range of its bits: positive floats and their bit patterns have the same order, so
thirty passes over a vocabulary in cache find it exactly, whatever its size.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.count_accepted import count_accepted_triton
from kernels.rejection_verify import SamplingTensors
from kernels.verification import AllowedTokens, Verification

# Enough to keep all in registers; left alone, the assembler takes fewer and spills.
_MAX_REGISTERS = 128
_VOCAB_BLOCK = 4096
_MIN_REQUEST_BLOCK = 64
_LOG2_E = tl.constexpr(1.4426950408889634)
_MIN_TEMPERATURE = tl.constexpr(1e-30)
_BITS_BEHIND_ONE = tl.constexpr(0x3F800001)


def rejection_verify_triton(
    logits: Tensor,
    draft_token_ids: Tensor,
    *,
    cu_rows: Tensor,
    sampling: SamplingTensors,
    allowed: AllowedTokens | None = None,
) -> Verification:
    """Do as `rejection_verify_reference`, same draws; lists of allowed tokens must be ascending.

    The last dimension of `logits` must be contiguous; they may be in any floating type.
    """
    num_rows, vocab_size = logits.shape
    assert logits.stride(1) == 1
    probs = torch.empty((num_rows, vocab_size), dtype=torch.float32, device=logits.device)
    token_ids = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    has_prior = allowed is not None and allowed.log_prior is not None
    num_requests = cu_rows.shape[0] - 1
    _draw_tokens[(num_rows,)](
        logits,
        allowed.token_ids if allowed is not None else draft_token_ids,
        allowed.cu_lens if allowed is not None else draft_token_ids,
        allowed.log_prior if allowed is not None and has_prior else probs,
        probs,
        token_ids,
        cu_rows,
        sampling.temperature,
        sampling.top_k,
        sampling.top_p,
        sampling.seeds,
        sampling.positions,
        logits.stride(0),
        vocab_size,
        num_requests,
        HAS_ALLOWED=allowed is not None,
        HAS_PRIOR=has_prior,
        REQUEST_BLOCK=max(_MIN_REQUEST_BLOCK, triton.next_power_of_2(num_requests)),
        BLOCK=min(_VOCAB_BLOCK, triton.next_power_of_2(vocab_size)),
        num_warps=8,
        maxnreg=_MAX_REGISTERS,
    )
    return Verification(token_ids, count_accepted_triton(token_ids, draft_token_ids, cu_rows))


@triton.jit
def _load_logits(
    logits_ptr,
    allowed_ids_ptr,
    log_prior_ptr,
    entries,
    is_entry,
    list_start,
    is_listed,
    HAS_ALLOWED: tl.constexpr,
    HAS_PRIOR: tl.constexpr,
):
    """float32 logits of a row's entries: tokens of the vocabulary, or of the row's list."""
    token_ids = entries.to(tl.int64)
    if HAS_ALLOWED:
        is_listed_entry = is_entry & is_listed
        listed = tl.load(allowed_ids_ptr + list_start + entries, mask=is_listed_entry, other=0)
        token_ids = tl.where(is_listed, listed, token_ids)
    logits = tl.load(logits_ptr + token_ids, mask=is_entry, other=float("-inf")).to(tl.float32)
    if HAS_PRIOR:
        logits += tl.load(
            log_prior_ptr + list_start + entries, mask=is_entry & is_listed, other=0.0
        )
    return logits


@triton.jit
def _sum_of_kept(probs_ptr, num_entries, threshold, IS_COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """The number of probabilities of at least `threshold`, or their sum; float64."""
    total = tl.zeros([], dtype=tl.float64)
    for start in range(0, num_entries, BLOCK):
        entries = start + tl.arange(0, BLOCK)
        probs = tl.load(probs_ptr + entries, mask=entries < num_entries, other=-1.0)
        is_kept = probs >= threshold
        if IS_COUNT:
            total += tl.sum(tl.where(is_kept, 1, 0), 0).to(tl.float64)
        else:
            total += tl.sum(tl.where(is_kept, probs, 0.0).to(tl.float64), 0)
    return total


@triton.jit
def _find_threshold(probs_ptr, num_entries, wanted, IS_COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """The largest threshold that keeps `wanted` of the probabilities, by number or by sum."""
    kept_bits = tl.zeros([], dtype=tl.int32)
    cut_bits = tl.full([], _BITS_BEHIND_ONE, dtype=tl.int32)
    while cut_bits - kept_bits > 1:
        bits = kept_bits + (cut_bits - kept_bits) // 2
        threshold = bits.to(tl.float32, bitcast=True)
        is_enough = _sum_of_kept(probs_ptr, num_entries, threshold, IS_COUNT, BLOCK) >= wanted
        kept_bits = tl.where(is_enough, bits, kept_bits)
        cut_bits = tl.where(is_enough, cut_bits, bits)
    return kept_bits.to(tl.float32, bitcast=True)


@triton.jit
def draw_uniform(seed, position):
    """Draw as `philox_uniform` does, float64 in [0, 1)."""
    seed_bits = seed.to(tl.uint64, bitcast=True)
    position_bits = position.to(tl.uint64, bitcast=True)
    zero = tl.zeros([], dtype=tl.uint32)
    high, low, _, _ = tl.philox_impl(
        (position_bits & 0xFFFFFFFF).to(tl.uint32),
        (position_bits >> 32).to(tl.uint32),
        zero,
        zero,
        (seed_bits & 0xFFFFFFFF).to(tl.uint32),
        (seed_bits >> 32).to(tl.uint32),
    )
    word = (high.to(tl.uint64) << 32) | low.to(tl.uint64)
    return (word >> 11).to(tl.float64) * (2.0**-53)


@triton.jit
def _invert_cdf(probs_ptr, num_entries, threshold, total, uniform, BLOCK: tl.constexpr):
    """The first entry whose cumulative probability exceeds its share `uniform` of the total."""
    below_total = (total.to(tl.int64, bitcast=True) - 1).to(tl.float64, bitcast=True)
    target = tl.minimum(uniform * total, below_total)
    before = tl.zeros([], dtype=tl.float64)
    drawn = tl.full([], -1, dtype=tl.int32)
    for start in range(0, num_entries, BLOCK):
        entries = start + tl.arange(0, BLOCK)
        probs = tl.load(probs_ptr + entries, mask=entries < num_entries, other=-1.0)
        is_kept = (probs >= threshold) & (probs > 0.0)
        kept = tl.where(is_kept, probs, 0.0).to(tl.float64)
        behind = before + tl.sum(kept, 0)
        if (drawn < 0) & (behind > target):
            is_past = is_kept & (before + tl.cumsum(kept, 0) > target)
            first = tl.min(tl.where(is_past, entries, num_entries), 0)
            # A scan may round below the sum of its block; then the last entry of it is meant.
            last = tl.max(tl.where(is_kept, entries, -1), 0)
            drawn = tl.minimum(first, last)
        before = behind
    return drawn


@triton.jit(do_not_specialize=["num_requests"])
def _draw_tokens(
    logits_ptr,
    allowed_ids_ptr,
    allowed_cu_lens_ptr,
    log_prior_ptr,
    probs_ptr,
    token_ids_ptr,
    cu_rows_ptr,
    temperature_ptr,
    top_k_ptr,
    top_p_ptr,
    seeds_ptr,
    positions_ptr,
    row_stride,
    vocab_size,
    num_requests,
    HAS_ALLOWED: tl.constexpr,
    HAS_PRIOR: tl.constexpr,
    REQUEST_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    requests = tl.arange(0, REQUEST_BLOCK)
    starts = tl.load(cu_rows_ptr + requests, mask=requests < num_requests, other=2**62)
    request = tl.sum(tl.where(starts <= row, 1, 0), 0) - 1
    row_logits_ptr = logits_ptr + row * row_stride
    row_probs_ptr = probs_ptr + row * vocab_size
    list_start = tl.zeros([], dtype=tl.int64)
    list_len = tl.zeros([], dtype=tl.int64)
    if HAS_ALLOWED:
        list_start = tl.load(allowed_cu_lens_ptr + row)
        list_len = tl.load(allowed_cu_lens_ptr + row + 1) - list_start
    is_listed = list_len > 0
    num_entries = tl.where(is_listed, list_len, vocab_size).to(tl.int32)

    best_logit = tl.full([], float("-inf"), dtype=tl.float32)
    best_entry = tl.zeros([], dtype=tl.int32)
    for start in range(0, num_entries, BLOCK):
        entries = start + tl.arange(0, BLOCK)
        is_entry = entries < num_entries
        logits = _load_logits(
            row_logits_ptr,
            allowed_ids_ptr,
            log_prior_ptr,
            entries,
            is_entry,
            list_start,
            is_listed,
            HAS_ALLOWED,
            HAS_PRIOR,
        )
        logit = tl.max(logits, 0)
        entry = tl.min(tl.where(logits == logit, entries, num_entries - 1), 0)
        best_entry = tl.where(logit > best_logit, entry, best_entry)
        best_logit = tl.maximum(best_logit, logit)

    drawn = best_entry
    temperature = tl.load(temperature_ptr + request)
    if temperature > 0.0:
        temperature = tl.maximum(temperature, _MIN_TEMPERATURE)
        highest = best_logit / temperature
        exp_total = tl.zeros([], dtype=tl.float64)
        for start in range(0, num_entries, BLOCK):
            entries = start + tl.arange(0, BLOCK)
            is_entry = entries < num_entries
            logits = _load_logits(
                row_logits_ptr,
                allowed_ids_ptr,
                log_prior_ptr,
                entries,
                is_entry,
                list_start,
                is_listed,
                HAS_ALLOWED,
                HAS_PRIOR,
            )
            probs = tl.exp(logits / temperature - highest)
            tl.store(row_probs_ptr + entries, probs, mask=is_entry)
            exp_total += tl.sum(probs.to(tl.float64), 0)
        # Other threads of the program read what was written here, and below.
        tl.debug_barrier()
        for start in range(0, num_entries, BLOCK):
            entries = start + tl.arange(0, BLOCK)
            is_entry = entries < num_entries
            probs = tl.load(row_probs_ptr + entries, mask=is_entry, other=0.0)
            tl.store(row_probs_ptr + entries, probs / exp_total.to(tl.float32), mask=is_entry)
        tl.debug_barrier()
        threshold = tl.zeros([], dtype=tl.float32)
        top_k = tl.load(top_k_ptr + request)
        if (top_k > 0) & (top_k < num_entries):
            threshold = _find_threshold(
                row_probs_ptr, num_entries, top_k.to(tl.float64), True, BLOCK
            )
        top_p = tl.load(top_p_ptr + request)
        kept = _sum_of_kept(row_probs_ptr, num_entries, threshold, False, BLOCK)
        if top_p < 1.0:
            wanted = top_p.to(tl.float64) * kept
            threshold = _find_threshold(row_probs_ptr, num_entries, wanted, False, BLOCK)
            kept = _sum_of_kept(row_probs_ptr, num_entries, threshold, False, BLOCK)
        uniform = draw_uniform(tl.load(seeds_ptr + request), tl.load(positions_ptr + row))
        drawn = _invert_cdf(row_probs_ptr, num_entries, threshold, kept, uniform, BLOCK)

    token_id = drawn.to(tl.int64)
    if HAS_ALLOWED:
        listed = tl.load(allowed_ids_ptr + list_start + drawn, mask=is_listed, other=0)
        token_id = tl.where(is_listed, listed, token_id)
    tl.store(token_ids_ptr + row, token_id)
