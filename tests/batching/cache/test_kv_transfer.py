"""Chunks go to host memory and back: bit by bit, or with an error that is bounded."""

from __future__ import annotations

import pytest
import torch

from batching.cache.kv_transfer import KVTransfer
from batching.config import CachePayload
from batching.model.loading import PagedKV

CHUNK_BLOCKS = 3
SHAPE = (2, 9, 4, 2, 8)  # layers, blocks, block size, heads, head dim


def make_kv(dtype: torch.dtype, seed: int) -> PagedKV:
    generator = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(SHAPE, generator=generator).to(dtype) for _ in range(2))
    return PagedKV(keys=keys, values=values)


def move(
    source: PagedKV, target: PagedKV, payload: CachePayload, *, first_block: int = 0
) -> KVTransfer:
    """Blocks 7, 2, 5 of the source to blocks 1, 8, 3 of the target, from `first_block` on."""
    sending = KVTransfer(source, chunk_blocks=CHUNK_BLOCKS, payload=payload)
    receiving = KVTransfer(target, chunk_blocks=CHUNK_BLOCKS, payload=payload)
    memory = sending.allocate(sending.payload_bytes + 64)[64:]
    sending.copy_out([7, 2, 5], memory)
    receiving.copy_in([1, 8, 3][first_block:], memory, first_block=first_block)
    return sending


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("first_block", [0, 1, 2])
def test_exact_is_bit_by_bit(dtype: torch.dtype, first_block: int) -> None:
    source, target, before = make_kv(dtype, 0), make_kv(dtype, 1), make_kv(dtype, 1)
    transfer = move(source, target, "exact", first_block=first_block)
    assert transfer.payload_bytes == 2 * 2 * CHUNK_BLOCKS * 4 * 2 * 8 * dtype.itemsize
    moved = dict(list(zip([1, 8, 3], [7, 2, 5], strict=True))[first_block:])
    for block in range(SHAPE[1]):
        for ours, theirs, old in (
            (target.keys, source.keys, before.keys),
            (target.values, source.values, before.values),
        ):
            expected = theirs[:, moved[block]] if block in moved else old[:, block]
            assert torch.equal(ours[:, block], expected)


@pytest.mark.parametrize(("payload", "max_error"), [("float16", 1 / 1024), ("int8", 0.5 / 127)])
def test_smaller_payloads_err_by_less_than_half_a_step(
    payload: CachePayload, max_error: float
) -> None:
    source, target = make_kv(torch.float32, 0), make_kv(torch.float32, 1)
    source.keys[0, 7, 0, 0, 0] = 40.0
    transfer = move(source, target, payload)
    exact = KVTransfer(source, chunk_blocks=CHUNK_BLOCKS, payload="exact")
    assert transfer.payload_bytes < 0.6 * exact.payload_bytes
    wanted, found = source.keys[:, [7, 2, 5]], target.keys[:, [1, 8, 3]]
    largest = wanted.abs().amax(dim=-1, keepdim=True)
    assert ((found - wanted).abs() <= 1.001 * max_error * largest).all()
    assert not torch.equal(found, wanted)


def test_numbers_beyond_float16_are_cut_to_its_range() -> None:
    source, target = make_kv(torch.float32, 0), make_kv(torch.float32, 1)
    source.values[:, 2] = 1e6
    move(source, target, "float16")
    assert target.values[:, 8].unique().tolist() == [65504.0]


def test_a_head_of_zeros_stays_zero_in_int8() -> None:
    source, target = make_kv(torch.float32, 0), make_kv(torch.float32, 1)
    source.keys.zero_()
    move(source, target, "int8")
    assert not target.keys[:, [1, 8, 3]].any()
