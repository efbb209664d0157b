"""Paged attention: the reference against plain float64 attention, the CPU kernel against both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from paged_case import TOLERANCES, check_case, make_case
from torch import Tensor

from kernels.paged_attention import (
    paged_attention_cpu,
    paged_attention_reference,
)
from kernels.tiled_attention import paged_attention_tiled

both = pytest.mark.parametrize(
    "attention", [paged_attention_reference, paged_attention_cpu, paged_attention_tiled]
)


@both
@pytest.mark.parametrize("is_scrambled", [False, True])
@pytest.mark.parametrize(
    ("num_rows", "context_len"),
    [(1, 1), (1, 4), (1, 5), (1, 31), (2, 2), (2, 5), (2, 9), (17, 17), (17, 20), (65, 65)],
)
def test_one_request(
    attention: Callable[..., Tensor], num_rows: int, context_len: int, is_scrambled: bool
) -> None:
    check_case(attention, make_case([(num_rows, context_len)], is_scrambled=is_scrambled))


@both
@pytest.mark.parametrize("num_groups", [1, 3, 4, 7])
@pytest.mark.parametrize("num_kv_heads", [1, 3])
def test_grouped_heads(
    attention: Callable[..., Tensor], num_groups: int, num_kv_heads: int
) -> None:
    shapes = [(1, 6), (5, 11)]
    check_case(attention, make_case(shapes, num_kv_heads=num_kv_heads, num_groups=num_groups))


@both
@pytest.mark.parametrize("is_scrambled", [False, True])
def test_ragged_requests(attention: Callable[..., Tensor], is_scrambled: bool) -> None:
    shapes = [(1, 37), (17, 23), (1, 1), (2, 8), (9, 9), (1, 16), (3, 40)]
    check_case(attention, make_case(shapes, is_scrambled=is_scrambled))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@both
def test_half_precision(attention: Callable[..., Tensor], dtype: torch.dtype) -> None:
    check_case(attention, make_case([(1, 13), (6, 18)], dtype=dtype))


@pytest.mark.parametrize("is_scrambled", [False, True])
def test_the_cpu_kernel_agrees_with_the_reference_on_long_contexts(is_scrambled: bool) -> None:
    shapes = [(65, 900), (1, 777), (33, 512), (2, 1023)]
    case = make_case(shapes, is_scrambled=is_scrambled)
    reference = paged_attention_reference(case.query, **case.arguments)
    output = paged_attention_cpu(case.query, **case.arguments)
    assert (output - reference).abs().max() <= TOLERANCES[torch.float32]


@both
def test_a_row_does_not_depend_on_the_rows_beside_it(attention: Callable[..., Tensor]) -> None:
    case = make_case([(5, 30), (7, 21)])
    together = attention(case.query, **case.arguments)
    alone = dict(case.arguments)
    alone["block_tables"] = case.arguments["block_tables"][1:]
    alone["context_lens"] = case.arguments["context_lens"][1:]
    alone["cu_query_lens"] = torch.tensor([0, 7], dtype=torch.int32)
    assert torch.equal(attention(case.query[5:12], **alone), together[5:12])


@pytest.mark.parametrize("position", [0, 40, 191, 255, 256, 300, 511, 512, 700])
def test_tiled_rows_have_the_same_bits_in_any_number(position: int) -> None:
    torch.manual_seed(position)
    num_tokens, block_size = position + 129, 16
    num_blocks = -(-num_tokens // block_size)
    key_cache = torch.randn(num_blocks, block_size, 3, 64)
    value_cache = torch.randn(num_blocks, block_size, 3, 64)
    query = torch.randn(num_tokens, 9, 64)

    def attend(start: int, stop: int) -> torch.Tensor:
        return paged_attention_tiled(
            query[start:stop],
            key_cache=key_cache,
            value_cache=value_cache,
            block_tables=torch.arange(num_blocks, dtype=torch.int32)[None],
            cu_query_lens=torch.tensor([0, stop - start], dtype=torch.int32),
            context_lens=torch.tensor([stop], dtype=torch.int32),
            scale=0.125,
        )

    whole = attend(position, num_tokens)
    for num_rows in (1, 2, 3, 7, 8, 9, 17, 31, 64, 65, 128):
        assert torch.equal(attend(position, position + num_rows), whole[:num_rows]), num_rows
    if position:
        assert torch.equal(attend(position - 20, position + 3)[20:], whole[:3])
