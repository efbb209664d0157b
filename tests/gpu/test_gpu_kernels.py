"""The compiled kernels against float32 references on the GPU: odd sizes, poisoned memory, races."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from kernel_checks import (
    TOLERANCES,
    check_attention,
    check_greedy_head,
    check_greedy_verify,
    check_norms_and_gate,
    check_rejection_verify,
    check_rotary,
    check_same_bits,
    check_store_kv,
    poisoned_memory,
)
from paged_case import make_case

from kernels.op_set import Ops
from kernels.ops import reference_ops, select_ops

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    # Poisoning goes with deterministic algorithms, which the references have no need of.
    pytest.mark.filterwarnings("ignore:(?is).*determinis:UserWarning"),
]

CUDA = torch.device("cuda")
NUM_REPEATS = 20

dtypes = pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)
constraints = pytest.mark.parametrize("constraint", ["none", "lists", "prior"])


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    with poisoned_memory():
        yield


@pytest.fixture(scope="module")
def ops() -> Ops:
    """The kernels that are chosen for a GPU."""
    chosen = select_ops(CUDA)
    assert chosen.paged_attention is not reference_ops().paged_attention
    return chosen


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
    check_attention(ops, case, CUDA)


@dtypes
@pytest.mark.parametrize("num_rows", [1, 2, 17, 65, 130, 257])
@pytest.mark.parametrize("context", [257, 511, 512, 513, 1025, 3000])
def test_attention_at_the_borders_of_splits(
    ops: Ops, context: int, num_rows: int, dtype: torch.dtype
) -> None:
    case = make_case([(num_rows, context)], num_groups=7, head_dim=128, block_size=16, dtype=dtype)
    check_attention(ops, case, CUDA)


@dtypes
def test_attention_of_many_tiles(ops: Ops, dtype: torch.dtype) -> None:
    """Enough work that each program merges its splits itself."""
    shapes = [(257, 1500)] * 6
    case = make_case(shapes, num_kv_heads=4, num_groups=7, head_dim=128, block_size=16, dtype=dtype)
    check_attention(ops, case, CUDA)


def test_attention_gives_the_same_bits_every_time(ops: Ops) -> None:
    case = make_case(
        [(65, 2100), (1, 900)],
        num_groups=7,
        head_dim=128,
        block_size=16,
        dtype=torch.bfloat16,
    )
    check_same_bits(ops, case, CUDA, num_repeats=NUM_REPEATS)


@dtypes
@pytest.mark.parametrize("num_tokens", [1, 65, 257])
def test_store_kv(ops: Ops, num_tokens: int, dtype: torch.dtype) -> None:
    check_store_kv(ops, num_tokens, dtype, CUDA)


@constraints
@pytest.mark.parametrize("vocab_size", [53, 9001, 152064])
def test_greedy_verify(ops: Ops, vocab_size: int, constraint: str) -> None:
    check_greedy_verify(ops, vocab_size, constraint, CUDA, num_repeats=NUM_REPEATS)


@constraints
@pytest.mark.parametrize("vocab_size", [53, 9001, 50000])
def test_rejection_verify(ops: Ops, vocab_size: int, constraint: str) -> None:
    check_rejection_verify(ops, vocab_size, constraint, CUDA, num_repeats=NUM_REPEATS)


@dtypes
@pytest.mark.parametrize("num_drafts", [[0], [64], [64, 0, 3, 256]])
@pytest.mark.parametrize(("vocab_size", "hidden_size"), [(259, 48), (9001, 576)])
def test_greedy_head(
    ops: Ops, num_drafts: list[int], vocab_size: int, hidden_size: int, dtype: torch.dtype
) -> None:
    check_greedy_head(
        ops,
        num_drafts,
        dtype,
        CUDA,
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_repeats=NUM_REPEATS,
    )


@dtypes
@pytest.mark.parametrize(("num_tokens", "size"), [(1, 576), (65, 3584), (257, 1536)])
def test_norms_and_gate(ops: Ops, num_tokens: int, size: int, dtype: torch.dtype) -> None:
    check_norms_and_gate(ops, num_tokens, size, dtype, device=CUDA)


@dtypes
@pytest.mark.parametrize("num_tokens", [1, 65])
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
def test_rotary(ops: Ops, head_dim: int, num_tokens: int, dtype: torch.dtype) -> None:
    check_rotary(ops, num_tokens, head_dim, dtype, device=CUDA)
