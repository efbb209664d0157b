"""Attention by stacked products and by tiles: right in every shape."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from paged_case import TOLERANCES, make_case
from torch.nn import functional

from kernels.paged_attention import paged_attention_cpu, paged_attention_reference
from kernels.stacked_attention import attend_stacked
from kernels.tiled_attention import attend_tiled

both = pytest.mark.parametrize(
    ("attend", "dtype"), [(attend_stacked, torch.bfloat16), (attend_tiled, torch.float32)]
)


@both
@pytest.mark.parametrize("num_rows", [1, 7, 8, 65, 129, 300])
@pytest.mark.parametrize("num_before", [0, 1, 127, 500])
@pytest.mark.parametrize(("num_groups", "num_kv_heads", "head_dim"), [(3, 3, 64), (7, 1, 5)])
def test_equal_to_float64(
    attend: Callable[..., torch.Tensor],
    dtype: torch.dtype,
    num_rows: int,
    num_before: int,
    num_groups: int,
    num_kv_heads: int,
    head_dim: int,
) -> None:
    torch.manual_seed(num_rows * 1000 + num_before)
    context_len = num_before + num_rows
    query = torch.randn(num_rows, num_groups * num_kv_heads, head_dim).to(dtype)
    keys = torch.randn(context_len, num_kv_heads, head_dim).to(dtype).transpose(0, 1)
    values = torch.randn(context_len, num_kv_heads, head_dim).to(dtype).transpose(0, 1)
    output = attend(query, keys, values, scale=head_dim**-0.5)
    expected = functional.scaled_dot_product_attention(
        query.transpose(0, 1).double(),
        keys.repeat_interleave(num_groups, dim=0).double(),
        values.repeat_interleave(num_groups, dim=0).double(),
        attn_mask=torch.ones(num_rows, context_len, dtype=torch.bool).tril(num_before),
        scale=head_dim**-0.5,
    ).transpose(0, 1)
    assert (output - expected).abs().max() <= TOLERANCES[dtype]


@pytest.mark.parametrize("is_scrambled", [False, True])
@pytest.mark.parametrize(
    "shapes", [[(129, 701)], [(512, 512)], [(65, 1100), (3, 40), (90, 1000)], [(65, 1100)] * 5]
)
def test_large_requests_agree_with_the_reference(
    shapes: list[tuple[int, int]], is_scrambled: bool
) -> None:
    """From one request to more than have stacked products; what nobody may read is not read."""
    case = make_case(shapes, is_scrambled=is_scrambled)
    reference = paged_attention_reference(case.query, **case.arguments)
    output = paged_attention_cpu(case.query, **case.arguments)
    assert (output - reference).abs().max() <= TOLERANCES[torch.float32]
    assert (output[sum(num_rows for num_rows, _ in shapes) :] == 0).all()
