"""Chunks of keys and values between the paged cache and host memory, in one of three encodings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import torch
from torch import Tensor

from batching.config import CachePayload
from batching.model.loading import PagedKV

_INT8_MAX = 127.0


class KVTransfer:
    """Copies whole chunks of blocks. Touches device memory, so the engine thread alone uses it.

    A payload is keys, then values, each [num_layers, chunk_blocks, block_size, kv_heads, head_dim]
    in the cache's own numbers ("exact"), as float16, or as int8 behind one float32 scale for each
    [num_layers, chunk_blocks, block_size, kv_heads]. Those of drafters follow in the same way.
    """

    def __init__(self, *paged_kvs: PagedKV, chunk_blocks: int, payload: CachePayload) -> None:
        """paged_kvs: the model's, then those of drafters, under the same block ids"""
        self._device = paged_kvs[0].keys.device
        dtype = torch.float16 if payload == "float16" else paged_kvs[0].keys.dtype
        self._encoding: _Encoding = _ScaledInt8() if payload == "int8" else _Cast(dtype)
        self._caches = [cache for one in paged_kvs for cache in (one.keys, one.values)]
        self._shapes = [(cache.shape[0], chunk_blocks, *cache.shape[2:]) for cache in self._caches]
        self._bounds = [0, *accumulate(map(self._encoding.num_bytes, self._shapes))]

    @property
    def payload_bytes(self) -> int:
        """Length of a chunk's payload."""
        return self._bounds[-1]

    def allocate(self, num_bytes: int) -> memoryview:
        """Host memory that the device copies from and to fast. Raises MemoryError."""
        is_pinned = self._device.type == "cuda"
        try:
            memory = torch.empty(num_bytes, dtype=torch.uint8, pin_memory=is_pinned)
        except RuntimeError as error:  # torch's word for it
            raise MemoryError(f"{num_bytes} bytes for the prefix cache: {error}") from error
        return memoryview(memory.numpy())  # type: ignore[arg-type]

    @torch.inference_mode()
    def copy_out(self, block_ids: Sequence[int], payload: memoryview) -> None:
        """Write the blocks of one chunk to host memory; complete on return."""
        ids = torch.tensor(block_ids, device=self._device)
        for part, cache in zip(self._parts(payload), self._caches, strict=True):
            self._encoding.write(cache.index_select(1, ids), part)

    @torch.inference_mode()
    def copy_in(self, block_ids: Sequence[int], payload: memoryview, *, first_block: int) -> None:
        """Fill blocks with a chunk's blocks from `first_block` on; complete on return."""
        ids = torch.tensor(block_ids, device=self._device)
        stop = first_block + len(block_ids)
        parts = self._parts(payload)
        for part, cache, shape in zip(parts, self._caches, self._shapes, strict=True):
            blocks = self._encoding.read(part, shape)[:, first_block:stop]
            cache.index_copy_(1, ids, blocks.to(self._device, cache.dtype))

    def _parts(self, payload: memoryview) -> list[Tensor]:
        memory = torch.frombuffer(payload, dtype=torch.uint8)
        return [memory[start:stop] for start, stop in pairwise(self._bounds)]


class _Encoding(Protocol):
    def num_bytes(self, shape: Sequence[int]) -> int: ...

    def write(self, blocks: Tensor, memory: Tensor) -> None: ...

    def read(self, memory: Tensor, shape: Sequence[int]) -> Tensor: ...


class _Cast:
    """Numbers of one type, one after another."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def num_bytes(self, shape: Sequence[int]) -> int:
        return torch.Size(shape).numel() * self._dtype.itemsize

    def write(self, blocks: Tensor, memory: Tensor) -> None:
        limits = torch.finfo(self._dtype)
        if self._dtype != blocks.dtype:
            blocks = blocks.clamp(limits.min, limits.max)
        memory.view(self._dtype).view(blocks.shape).copy_(blocks)

    def read(self, memory: Tensor, shape: Sequence[int]) -> Tensor:
        return memory.view(self._dtype).view(*shape)


class _ScaledInt8:
    """One scale for each head of each token, then the quotients."""

    def num_bytes(self, shape: Sequence[int]) -> int:
        return torch.Size(shape[:-1]).numel() * torch.float32.itemsize + torch.Size(shape).numel()

    def write(self, blocks: Tensor, memory: Tensor) -> None:
        scales = blocks.float().abs().amax(dim=-1) / _INT8_MAX
        quotients = (blocks.float() / scales.clamp(min=1e-30)[..., None]).round()
        stored_scales, stored = self._parts(memory, blocks.shape)
        stored_scales.copy_(scales)
        stored.copy_(quotients)

    def read(self, memory: Tensor, shape: Sequence[int]) -> Tensor:
        scales, quotients = self._parts(memory, shape)
        return quotients.float() * scales[..., None]

    def _parts(self, memory: Tensor, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        num_scale_bytes = torch.Size(shape[:-1]).numel() * torch.float32.itemsize
        scales = memory[:num_scale_bytes].view(torch.float32).view(*shape[:-1])
        return scales, memory[num_scale_bytes:].view(torch.int8).view(*shape)
