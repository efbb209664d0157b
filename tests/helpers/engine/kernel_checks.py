"""Checks all kernels against float32 references, on a GPU or in the interpreter.

`tests/gpu` runs them compiled and in full sizes; on the CPU smaller sizes show that they run and
would fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from head_case import make_head_case
from paged_case import PagedCase
from torch import Tensor
from verify_case import FILTERS, GREEDY, check_same, greedy, make_verify_case, sampled

from kernels.greedy_head import greedy_head_reference
from kernels.greedy_verify import greedy_verify_reference
from kernels.op_set import Ops
from kernels.ops import reference_ops
from kernels.paged_attention import paged_attention_reference
from kernels.rejection_verify import rejection_verify_reference

# Largest absolute error for outputs of the size of 1, by dtype: a GPU sums in another order.
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill new tensors with NaN, or the largest integer, until a kernel has written them."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def move_case(case: PagedCase, device: torch.device) -> tuple[Tensor, dict[str, Any]]:
    """Move the query and the arguments of an attention case to a device."""
    arguments = {
        name: value.to(device) if isinstance(value, Tensor) else value
        for name, value in case.arguments.items()
    }
    return case.query.to(device), arguments


def check_attention(ops: Ops, case: PagedCase, device: torch.device) -> None:
    """Check that attention is near the reference, and zero behind the last request."""
    query, arguments = move_case(case, device)
    output = ops.paged_attention(query, **arguments)
    expected = paged_attention_reference(query, **arguments)
    num_rows = int(arguments["cu_query_lens"][-1])
    assert (output[num_rows:] == 0).all()
    error = float((output.float() - expected.float()).abs().max())
    assert error <= TOLERANCES[query.dtype], error


def check_same_bits(ops: Ops, case: PagedCase, device: torch.device, *, num_repeats: int) -> None:
    """Check that attention gives the same bits every time."""
    query, arguments = move_case(case, device)
    first = ops.paged_attention(query, **arguments)
    for _ in range(num_repeats):
        assert torch.equal(ops.paged_attention(query, **arguments), first)


def check_store_kv(ops: Ops, num_tokens: int, dtype: torch.dtype, device: torch.device) -> None:
    """Check views of packed rows, one token in five without a slot: bit by bit, the whole cache."""
    packed = torch.randn(num_tokens, 12, 80, device=device).to(dtype)
    cache = torch.randn(2, 40, 16, 4, 80, device=device).to(dtype)
    expected = cache.clone()
    slots = torch.randperm(640, device=device)[:num_tokens]
    slots[::5] = -1
    for store, target in ((ops.store_kv, cache), (reference_ops().store_kv, expected)):
        store(
            packed[:, 4:8],
            packed[:, 8:],
            key_cache=target[0],
            value_cache=target[1],
            slot_mapping=slots,
        )
    assert torch.equal(cache, expected)


def check_greedy_verify(
    ops: Ops, vocab_size: int, constraint: str, device: torch.device, *, num_repeats: int
) -> None:
    """Check for the reference's tokens every time, with lists of allowed tokens too."""
    case = make_verify_case(
        [0, 64, 3, 1],
        vocab_size=vocab_size,
        seed=5,
        constraint=constraint,
        is_coarse=True,
        filters=GREEDY,
    )
    expected = greedy(greedy_verify_reference, case)
    moved = case.to(device)
    for _ in range(num_repeats):
        check_same(greedy(ops.greedy_verify, moved), expected, case.cu_rows)


def check_rejection_verify(
    ops: Ops, vocab_size: int, constraint: str, device: torch.device, *, num_repeats: int
) -> None:
    """Check for the reference's draws every time, under all filters."""
    case = make_verify_case(
        [0, 9, 3, 1, 0, 0], vocab_size=vocab_size, seed=6, constraint=constraint, filters=FILTERS
    )
    expected = sampled(rejection_verify_reference, case)
    moved = case.to(device)
    for _ in range(num_repeats):
        check_same(sampled(ops.rejection_verify, moved), expected, case.cu_rows)


def check_greedy_head(
    ops: Ops,
    num_drafts: list[int],
    dtype: torch.dtype,
    device: torch.device,
    *,
    vocab_size: int,
    hidden_size: int,
    num_repeats: int,
) -> None:
    """Check for the reference's tokens on whole numbers, whose sums are exact in any order."""
    assert ops.greedy_head is not None
    case = make_head_case(num_drafts, vocab_size=vocab_size, hidden_size=hidden_size, dtype=dtype)
    expected = greedy_head_reference(
        case.hidden.float(), case.weight.float(), case.draft_token_ids, cu_rows=case.cu_rows
    )
    moved = case.to(device)
    for at in range(2 * num_repeats):
        ours = ops.greedy_head(
            moved.hidden,
            moved.weight,
            moved.draft_token_ids,
            cu_rows=moved.cu_rows,
            writes_logits=at % 2 == 1,
        )
        check_same(ours, expected, case.cu_rows)


def _close(ours: Tensor, expected: Tensor) -> None:
    tolerance = TOLERANCES[expected.dtype]
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=tolerance)


def _pair(ops: Ops, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A fused operation and its reference."""
    reference = reference_ops().fused
    assert ops.fused is not None
    assert reference is not None
    return getattr(ops.fused, name), getattr(reference, name)


def check_norms_and_gate(
    ops: Ops, num_tokens: int, size: int, dtype: torch.dtype, *, device: torch.device
) -> None:
    """Check norms of rows and heads, with a residual and without, and the gate."""
    hidden = torch.randn(num_tokens, size, device=device).to(dtype)
    weight = torch.randn(size, device=device).to(dtype)
    ours, reference = _pair(ops, "rms_norm")
    _close(ours(hidden, weight, eps=1e-6), reference(hidden, weight, eps=1e-6))
    heads = hidden.unflatten(1, (-1, 64))[:, 1:6]
    _close(ours(heads, weight[:64], eps=1e-6), reference(heads, weight[:64], eps=1e-6))
    ours, reference = _pair(ops, "add_rms_norm")
    left, right = hidden.flip(0), hidden.flip(0)
    _close(ours(hidden, left, weight, eps=1e-6), reference(hidden, right, weight, eps=1e-6))
    _close(left, right)
    ours, reference = _pair(ops, "silu_mul")
    _close(ours(hidden), reference(hidden))


def check_rotary(
    ops: Ops, num_tokens: int, head_dim: int, dtype: torch.dtype, *, device: torch.device
) -> None:
    """Check rotation in place on packed rows; their values stay as they are."""
    packed = torch.randn(num_tokens, 11, head_dim, device=device).to(dtype)
    expected = packed.clone()
    angles = torch.rand(num_tokens, head_dim // 2, device=device).repeat(1, 2) * 6
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    for rotate, heads in zip(_pair(ops, "rotary"), (packed, expected), strict=True):
        rotate(heads[:, :7], heads[:, 7:9], cos=cos, sin=sin)
    _close(packed, expected)
    assert torch.equal(packed[:, 9:], expected[:, 9:])
