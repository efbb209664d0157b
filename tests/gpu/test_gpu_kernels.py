"""The compiled kernels against float32 references on the GPU: odd sizes, poisoned memory, races."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from paged_case import PagedCase, make_case
from torch import Tensor
from verify_case import FILTERS, GREEDY, check_same, greedy, make_verify_case, sampled

from kernels.greedy_verify import greedy_verify_reference
from kernels.op_set import Ops
from kernels.ops import reference_ops, select_ops
from kernels.paged_attention import paged_attention_reference
from kernels.rejection_verify import rejection_verify_reference

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

CUDA = torch.device("cuda")
NUM_REPEATS = 20
# Largest absolute error for outputs of the size of 1, by dtype: the same table as on the CPU, but
# that a GPU sums in another order.
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}

dtypes = pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """New tensors hold NaN, or the largest integer, until a kernel has written them."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def ops() -> Ops:
    """The kernels that are chosen for a GPU."""
    chosen = select_ops(CUDA)
    assert chosen.paged_attention is not reference_ops().paged_attention
    return chosen


def on_gpu(case: PagedCase) -> tuple[Tensor, dict[str, Any]]:
    """Query and arguments of a case."""
    arguments = {
        name: value.to(CUDA) if isinstance(value, Tensor) else value
        for name, value in case.arguments.items()
    }
    return case.query.to(CUDA), arguments


def check_attention(ops: Ops, case: PagedCase) -> None:
    query, arguments = on_gpu(case)
    output = ops.paged_attention(query, **arguments)
    expected = paged_attention_reference(query, **arguments)
    num_rows = int(arguments["cu_query_lens"][-1])
    assert (output[num_rows:] == 0).all()
    error = float((output.float() - expected.float()).abs().max())
    assert error <= TOLERANCES[query.dtype], error


@dtypes
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
@pytest.mark.parametrize("num_groups", [1, 3, 4, 7, 8])
def test_attention_over_heads(ops: Ops, num_groups: int, head_dim: int, dtype: torch.dtype) -> None:
    case = make_case(
        [(1, 700), (65, 1100), (1, 1), (257, 300)],
        num_groups=num_groups,
        head_dim=head_dim,
        block_size=16,
        dtype=dtype,
    )
    check_attention(ops, case)


@dtypes
@pytest.mark.parametrize("num_rows", [1, 2, 17, 65, 130, 257])
@pytest.mark.parametrize("context", [257, 511, 512, 513, 1025, 3000])
def test_attention_at_the_borders_of_splits(
    ops: Ops, context: int, num_rows: int, dtype: torch.dtype
) -> None:
    case = make_case([(num_rows, context)], num_groups=7, head_dim=128, block_size=16, dtype=dtype)
    check_attention(ops, case)


@dtypes
def test_attention_of_many_tiles(ops: Ops, dtype: torch.dtype) -> None:
    """Enough work that each program merges its splits itself."""
    shapes = [(257, 1500)] * 6
    case = make_case(shapes, num_kv_heads=4, num_groups=7, head_dim=128, block_size=16, dtype=dtype)
    check_attention(ops, case)


def test_attention_gives_the_same_bits_every_time(ops: Ops) -> None:
    case = make_case(
        [(65, 2100), (1, 900)],
        num_groups=7,
        head_dim=128,
        block_size=16,
        dtype=torch.bfloat16,
    )
    query, arguments = on_gpu(case)
    first = ops.paged_attention(query, **arguments)
    for _ in range(NUM_REPEATS):
        assert torch.equal(ops.paged_attention(query, **arguments), first)


@dtypes
@pytest.mark.parametrize("num_tokens", [1, 65, 257])
def test_store_kv(ops: Ops, num_tokens: int, dtype: torch.dtype) -> None:
    packed = torch.randn(num_tokens, 12, 80, device=CUDA).to(dtype)
    cache = torch.randn(2, 40, 16, 4, 80, device=CUDA).to(dtype)
    expected = cache.clone()
    slots = torch.randperm(640, device=CUDA)[:num_tokens]
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


@pytest.mark.parametrize("constraint", ["none", "lists", "prior"])
@pytest.mark.parametrize("vocab_size", [53, 9001, 152064])
def test_greedy_verify(ops: Ops, vocab_size: int, constraint: str) -> None:
    case = make_verify_case(
        [0, 64, 3, 1],
        vocab_size=vocab_size,
        seed=5,
        constraint=constraint,
        is_coarse=True,
        filters=GREEDY,
    )
    expected = greedy(greedy_verify_reference, case)
    moved = case.to(CUDA)
    for _ in range(NUM_REPEATS):
        check_same(greedy(ops.greedy_verify, moved), expected, case.cu_rows)


@pytest.mark.parametrize("constraint", ["none", "lists", "prior"])
@pytest.mark.parametrize("vocab_size", [53, 9001, 50000])
def test_rejection_verify(ops: Ops, vocab_size: int, constraint: str) -> None:
    case = make_verify_case(
        [0, 9, 3, 1, 0, 0], vocab_size=vocab_size, seed=6, constraint=constraint, filters=FILTERS
    )
    expected = sampled(rejection_verify_reference, case)
    moved = case.to(CUDA)
    for _ in range(NUM_REPEATS):
        check_same(sampled(ops.rejection_verify, moved), expected, case.cu_rows)


def close(ours: Tensor, expected: Tensor) -> None:
    tolerance = TOLERANCES[expected.dtype]
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=tolerance)


def pairs(ops: Ops, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A fused operation and its reference."""
    reference = reference_ops().fused
    assert ops.fused is not None
    assert reference is not None
    return getattr(ops.fused, name), getattr(reference, name)


@dtypes
@pytest.mark.parametrize(("num_tokens", "size"), [(1, 576), (65, 3584), (257, 1536)])
def test_norms_and_gate(ops: Ops, num_tokens: int, size: int, dtype: torch.dtype) -> None:
    hidden = torch.randn(num_tokens, size, device=CUDA).to(dtype)
    weight = torch.randn(size, device=CUDA).to(dtype)
    ours, reference = pairs(ops, "rms_norm")
    close(ours(hidden, weight, eps=1e-6), reference(hidden, weight, eps=1e-6))
    heads = hidden.unflatten(1, (-1, 64))[:, 1:6]
    close(ours(heads, weight[:64], eps=1e-6), reference(heads, weight[:64], eps=1e-6))
    ours, reference = pairs(ops, "add_rms_norm")
    left, right = hidden.flip(0), hidden.flip(0)
    close(ours(hidden, left, weight, eps=1e-6), reference(hidden, right, weight, eps=1e-6))
    close(left, right)
    ours, reference = pairs(ops, "silu_mul")
    close(ours(hidden), reference(hidden))


@dtypes
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
def test_rotary(ops: Ops, head_dim: int, dtype: torch.dtype) -> None:
    packed = torch.randn(65, 11, head_dim, device=CUDA).to(dtype)
    expected = packed.clone()
    angles = torch.rand(65, head_dim // 2, device=CUDA).repeat(1, 2) * 6
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    for rotate, heads in zip(pairs(ops, "rotary"), (packed, expected), strict=True):
        rotate(heads[:, :7], heads[:, 7:9], cos=cos, sin=sin)
    close(packed, expected)
