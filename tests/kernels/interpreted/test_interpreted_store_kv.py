"""The Triton kernel that writes the cache against the reference, bit by bit."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.store_kv import store_kv_triton
from kernels.store_kv import store_kv_reference

NUM_BLOCKS, BLOCK_SIZE = 5, 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("num_kv_heads", "head_dim"), [(1, 16), (3, 8), (2, 80)])
@pytest.mark.parametrize("slots", [[0], [19, -1, 7, 3], [-1], list(range(19, -1, -1))])
def test_agrees_with_the_reference(
    slots: list[int], num_kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(len(slots))
    packed = torch.randn(len(slots), 3 * num_kv_heads, head_dim, generator=generator).to(dtype)
    # Views of packed rows on one side, heads outside on the other.
    keys = packed[:, num_kv_heads : 2 * num_kv_heads]
    values = packed[:, 2 * num_kv_heads :].transpose(0, 1).contiguous().transpose(0, 1)
    layers = torch.randn(4, NUM_BLOCKS, BLOCK_SIZE, num_kv_heads, head_dim, generator=generator).to(
        dtype
    )
    expected = layers.clone()
    slot_mapping = torch.tensor(slots)
    store_kv_triton(
        keys, values, key_cache=layers[1], value_cache=layers[2], slot_mapping=slot_mapping
    )
    store_kv_reference(
        keys, values, key_cache=expected[1], value_cache=expected[2], slot_mapping=slot_mapping
    )
    assert torch.equal(layers, expected)
