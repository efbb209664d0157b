"""The checks of `tests/gpu`, in sizes for the interpreter: pairs of all that may be odd."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest
import torch
from kernel_checks import (
    check_attention,
    check_greedy_head,
    check_greedy_verify,
    check_norms_and_gate,
    check_rejection_verify,
    check_rotary,
    check_same_bits,
    check_store_kv,
)
from paged_case import make_case
from pairwise import pairwise

from kernels.gpu.triton_ops import triton_ops

CPU = torch.device("cpu")
OPS = triton_ops()
DTYPES = (torch.float32, torch.float16)

ATTENTION: dict[str, Any] = {
    "rows": (((1, 1),), ((1, 40), (17, 17)), ((65, 70),), ((3, 515), (1, 9))),
    "num_groups": (1, 3, 4, 7, 8),
    "head_dim": (64, 80, 96, 128),
    "block_size": (16, 4),
    "dtype": DTYPES,
}


def test_pairs_are_all_there() -> None:
    table = pairwise(**ATTENTION)
    for left, right in combinations(ATTENTION, 2):
        met = {(row[left], row[right]) for row in table}
        assert met == set(product(ATTENTION[left], ATTENTION[right]))
    num_all = 4 * 5 * 4 * 2 * 2
    assert 20 <= len(table) <= num_all / 8


def _attend(row: dict[str, Any]) -> None:
    case = make_case(
        list(row["rows"]),
        num_kv_heads=2,
        num_groups=row["num_groups"],
        head_dim=row["head_dim"],
        block_size=row["block_size"],
        dtype=row["dtype"],
    )
    check_attention(OPS, case, CPU)


@pytest.mark.slow
@pytest.mark.parametrize("row", pairwise(**ATTENTION), ids=str)
def test_attention_in_pairs(row: dict[str, Any]) -> None:
    _attend(row)


def test_attention_and_its_bits() -> None:
    _attend(pairwise(**ATTENTION)[0])
    case = make_case([(3, 40), (1, 9)], num_groups=7, head_dim=64, block_size=16)
    check_same_bits(OPS, case, CPU, num_repeats=2)


STORE = pairwise(num_tokens=(1, 7, 65), dtype=(*DTYPES, torch.bfloat16))


@pytest.mark.parametrize("row", STORE[:2], ids=str)
def test_store_kv(row: dict[str, Any]) -> None:
    check_store_kv(OPS, row["num_tokens"], row["dtype"], CPU)


VERIFY = pairwise(vocab_size=(53, 4096, 9001), constraint=("none", "lists", "prior"))


@pytest.mark.parametrize("row", [VERIFY[0], VERIFY[4]], ids=str)
def test_greedy_verify(row: dict[str, Any]) -> None:
    check_greedy_verify(OPS, row["vocab_size"], row["constraint"], CPU, num_repeats=1)


@pytest.mark.slow
@pytest.mark.parametrize("row", VERIFY, ids=str)
def test_both_verifiers_in_pairs(row: dict[str, Any]) -> None:
    check_greedy_verify(OPS, row["vocab_size"], row["constraint"], CPU, num_repeats=1)
    vocab_size = min(row["vocab_size"], 4096)
    check_rejection_verify(OPS, vocab_size, row["constraint"], CPU, num_repeats=1)


HEAD = pairwise(
    num_drafts=([0], [16], [64, 0, 3, 65]),
    vocab_size=(127, 128, 300),
    hidden_size=(16, 48, 576),
    dtype=DTYPES,
)


def _check_head(row: dict[str, Any]) -> None:
    sizes = {"vocab_size": row["vocab_size"], "hidden_size": row["hidden_size"]}
    check_greedy_head(OPS, row["num_drafts"], row["dtype"], CPU, **sizes, num_repeats=1)


def test_greedy_head() -> None:
    _check_head(HEAD[0])


@pytest.mark.slow
@pytest.mark.parametrize("row", HEAD, ids=str)
def test_greedy_head_in_pairs(row: dict[str, Any]) -> None:
    _check_head(row)


FUSED = pairwise(
    num_tokens=(1, 5, 65), size=(384, 576, 1536), head_dim=(64, 80, 96, 128), dtype=DTYPES
)


def _check_fused(row: dict[str, Any]) -> None:
    check_norms_and_gate(OPS, row["num_tokens"], row["size"], row["dtype"], device=CPU)
    check_rotary(OPS, row["num_tokens"], row["head_dim"], row["dtype"], device=CPU)


def test_fused_operations() -> None:
    _check_fused(FUSED[0])


@pytest.mark.slow
@pytest.mark.parametrize("row", FUSED, ids=str)
def test_fused_operations_in_pairs(row: dict[str, Any]) -> None:
    _check_fused(row)
