"""Paged attention: the reference against plain float64 attention, the CPU kernel against both."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from oracles.dense_attention import attend_ragged
from torch import Tensor

from kernels.paged_attention import paged_attention_cpu, paged_attention_reference

BLOCK_SIZE = 4
HEAD_DIM = 8
NUM_PADDING_ROWS = 3

# Largest absolute error against float64 for outputs of the size of 1, by dtype of the inputs.
TOLERANCES = {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3}

both = pytest.mark.parametrize("attention", [paged_attention_reference, paged_attention_cpu])


@dataclass(frozen=True)
class PagedCase:
    """Inputs of the kernel, and the same content unpaged for the oracle."""

    arguments: dict[str, Tensor | float]
    query: Tensor
    queries: list[Tensor]
    keys: list[Tensor]
    values: list[Tensor]
    scale: float

    def expected(self) -> Tensor:
        return attend_ragged(self.queries, self.keys, self.values, scale=self.scale)


def make_case(
    shapes: list[tuple[int, int]],
    *,
    num_kv_heads: int = 2,
    num_groups: int = 3,
    is_scrambled: bool = True,
    dtype: torch.dtype = torch.float32,
) -> PagedCase:
    """Requests of (num_rows, context_len) in a cache that is NaN wherever no context stands."""
    generator = torch.Generator().manual_seed(len(shapes) * 1000 + shapes[0][1])

    def make(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    num_heads = num_kv_heads * num_groups
    queries = [make(num_rows, num_heads, HEAD_DIM) for num_rows, _ in shapes]
    keys = [make(context_len, num_kv_heads, HEAD_DIM) for _, context_len in shapes]
    values = [make(context_len, num_kv_heads, HEAD_DIM) for _, context_len in shapes]
    nums_blocks = [-(-context_len // BLOCK_SIZE) for _, context_len in shapes]
    free_blocks = list(range(sum(nums_blocks) + 3))
    if is_scrambled:
        random.Random(0).shuffle(free_blocks)
    cache_shape = (len(free_blocks), BLOCK_SIZE, num_kv_heads, HEAD_DIM)
    key_cache = torch.full(cache_shape, float("nan"), dtype=dtype)
    value_cache = key_cache.clone()
    unused_block = free_blocks.pop()  # stays NaN: table entries behind the context point at it
    tables = torch.full((len(shapes), max(nums_blocks) + 1), unused_block, dtype=torch.int32)
    for index, num_blocks in enumerate(nums_blocks):
        blocks, free_blocks = free_blocks[:num_blocks], free_blocks[num_blocks:]
        tables[index, :num_blocks] = torch.tensor(blocks, dtype=torch.int32)
        for position in range(len(keys[index])):
            slot = blocks[position // BLOCK_SIZE], position % BLOCK_SIZE
            key_cache[slot] = keys[index][position]
            value_cache[slot] = values[index][position]
    bounds = torch.tensor([0, *(num_rows for num_rows, _ in shapes)]).cumsum(0).int()
    padding = torch.full((NUM_PADDING_ROWS, num_heads, HEAD_DIM), float("nan"), dtype=dtype)
    scale = HEAD_DIM**-0.5
    return PagedCase(
        arguments={
            "key_cache": key_cache,
            "value_cache": value_cache,
            "block_tables": tables,
            "cu_query_lens": bounds,
            "context_lens": torch.tensor([context for _, context in shapes]).int(),
            "scale": scale,
        },
        query=torch.cat([*queries, padding]),
        queries=queries,
        keys=keys,
        values=values,
        scale=scale,
    )


def check_case(attention: Callable[..., Tensor], case: PagedCase) -> None:
    """Outputs within tolerance of the oracle, padding rows zero."""
    output = attention(case.query, **case.arguments)
    assert output.shape == case.query.shape
    assert output.dtype == case.query.dtype
    expected = case.expected()
    assert (output[len(expected) :] == 0).all()
    error = (output[: len(expected)].double() - expected).abs().max()
    assert error <= TOLERANCES[case.query.dtype], float(error)


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
