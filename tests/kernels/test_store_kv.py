"""Writing keys and values into the paged cache: every slot, skipped tokens, strided inputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernels.store_kv import store_kv_cpu, store_kv_reference

NUM_BLOCKS, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM = 5, 4, 3, 8
NUM_SLOTS = NUM_BLOCKS * BLOCK_SIZE

both = pytest.mark.parametrize("store", [store_kv_reference, store_kv_cpu])


def make_caches(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    shape = (NUM_BLOCKS, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM)
    return torch.full(shape, 7.0, dtype=dtype), torch.full(shape, -7.0, dtype=dtype)


def make_rows(num_tokens: int, *, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(num_tokens, NUM_KV_HEADS, HEAD_DIM, generator=generator)
    return rows.to(dtype)


def check_stored(
    store: Callable[..., None], keys: Tensor, values: Tensor, slots: list[int]
) -> None:
    """Store, then compare each slot with the row meant for it; all others must be untouched."""
    key_cache, value_cache = make_caches(keys.dtype)
    store(
        keys,
        values,
        key_cache=key_cache,
        value_cache=value_cache,
        slot_mapping=torch.tensor(slots, dtype=torch.int64),
    )
    row_of_slot = {slot: row for row, slot in enumerate(slots) if slot >= 0}
    for slot in range(NUM_SLOTS):
        block, offset = divmod(slot, BLOCK_SIZE)
        row = row_of_slot.get(slot)
        if row is None:
            assert (key_cache[block, offset] == 7.0).all(), slot
            assert (value_cache[block, offset] == -7.0).all(), slot
        else:
            assert torch.equal(key_cache[block, offset], keys[row]), slot
            assert torch.equal(value_cache[block, offset], values[row]), slot


@both
@pytest.mark.parametrize(
    "slots",
    [
        [0],
        [NUM_SLOTS - 1],
        [3, 4],
        [18, 2, 11, 5, 0],
        list(range(NUM_SLOTS)),
        list(reversed(range(NUM_SLOTS))),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_go_to_their_slots(
    store: Callable[..., None], slots: list[int], dtype: torch.dtype
) -> None:
    keys = make_rows(len(slots), seed=1, dtype=dtype)
    values = make_rows(len(slots), seed=2, dtype=dtype)
    check_stored(store, keys, values, slots)


@both
@pytest.mark.parametrize("slots", [[-1], [-1, 6], [6, -1, 7, -1, -1, 0], [9, -1]])
def test_tokens_with_slot_minus_one_are_not_stored(
    store: Callable[..., None], slots: list[int]
) -> None:
    check_stored(store, make_rows(len(slots), seed=3), make_rows(len(slots), seed=4), slots)


@both
@pytest.mark.parametrize("slots", [[12, 3, 7], [12, -1, 7]])
def test_inputs_may_be_strided(store: Callable[..., None], slots: list[int]) -> None:
    packed = torch.randn(NUM_KV_HEADS, 3, 2 * HEAD_DIM, generator=torch.Generator().manual_seed(5))
    heads_first = packed.transpose(0, 1)  # as a model's attention hands them over
    keys, values = heads_first[..., :HEAD_DIM], heads_first[..., HEAD_DIM:]
    assert not keys.is_contiguous()
    check_stored(store, keys, values, slots)


@both
def test_the_cache_may_be_one_layer_of_a_larger_one(store: Callable[..., None]) -> None:
    layers = torch.zeros(3, NUM_BLOCKS, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM)
    rows = make_rows(1, seed=6)
    store(rows, rows, key_cache=layers[1], value_cache=layers[2], slot_mapping=torch.tensor([5]))
    assert layers[0].count_nonzero() == 0
    assert torch.equal(layers[1, 1, 1], rows[0])
    assert torch.equal(layers[2, 1, 1], rows[0])
