"""Inputs of paged attention, NaN wherever reading is forbidden, and a check against an oracle."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from oracles.engine.dense_attention import attend_ragged
from torch import Tensor

NUM_PADDING_ROWS = 3

# Largest absolute error against float64 for outputs of the size of 1, by dtype of the inputs.
TOLERANCES = {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3}


@dataclass(frozen=True)
class PagedCase:
    """Inputs of the kernel, and the same content unpaged for the oracle."""

    arguments: dict[str, Any]
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
    head_dim: int = 8,
    block_size: int = 4,
    is_scrambled: bool = True,
    dtype: torch.dtype = torch.float32,
) -> PagedCase:
    """Make requests of (num_rows, context_len) in a cache that is NaN outside their contexts."""
    generator = torch.Generator().manual_seed(len(shapes) * 1000 + shapes[0][1])

    def make(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    num_heads = num_kv_heads * num_groups
    queries = [make(num_rows, num_heads, head_dim) for num_rows, _ in shapes]
    keys = [make(context_len, num_kv_heads, head_dim) for _, context_len in shapes]
    values = [make(context_len, num_kv_heads, head_dim) for _, context_len in shapes]
    nums_blocks = [-(-context_len // block_size) for _, context_len in shapes]
    free_blocks = list(range(sum(nums_blocks) + 3))
    if is_scrambled:
        random.Random(0).shuffle(free_blocks)
    cache_shape = (len(free_blocks), block_size, num_kv_heads, head_dim)
    key_cache = torch.full(cache_shape, float("nan"), dtype=dtype)
    value_cache = key_cache.clone()
    unused_block = free_blocks.pop()  # stays NaN: table entries behind the context point at it
    tables = torch.full((len(shapes), max(nums_blocks) + 1), unused_block, dtype=torch.int32)
    for index, num_blocks in enumerate(nums_blocks):
        blocks, free_blocks = free_blocks[:num_blocks], free_blocks[num_blocks:]
        tables[index, :num_blocks] = torch.tensor(blocks, dtype=torch.int32)
        for position in range(len(keys[index])):
            slot = blocks[position // block_size], position % block_size
            key_cache[slot] = keys[index][position]
            value_cache[slot] = values[index][position]
    bounds = torch.tensor([0, *(num_rows for num_rows, _ in shapes)]).cumsum(0).int()
    padding = torch.full((NUM_PADDING_ROWS, num_heads, head_dim), float("nan"), dtype=dtype)
    scale = head_dim**-0.5
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
    """Check that outputs are within tolerance of the oracle and padding rows are zero."""
    output = attention(case.query, **case.arguments)
    assert output.shape == case.query.shape
    assert output.dtype == case.query.dtype
    expected = case.expected()
    assert (output[len(expected) :] == 0).all()
    error = (output[: len(expected)].double() - expected).abs().max()
    assert error <= TOLERANCES[case.query.dtype], float(error)
