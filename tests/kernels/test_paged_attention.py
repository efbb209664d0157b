"""Paged attention: the reference against plain float64 attention, the CPU kernel against both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from paged_case import TOLERANCES, check_case, make_case
from torch import Tensor

from kernels.paged_attention import paged_attention_cpu, paged_attention_reference
from kernels.row_grouping import RowGrouping

both = pytest.mark.parametrize(
    "attention",
    [
        paged_attention_reference,
        *(partial(paged_attention_cpu, grouping=grouping) for grouping in RowGrouping),
    ],
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
