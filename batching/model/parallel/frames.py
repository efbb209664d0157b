"""What the lead tells the other ranks, and they it: MessagePack frames through sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from batching.config import CacheConfig, EngineConfig
from batching.model.forward_batch import INPUTS, ForwardBatch, SharedKV
from batching.model.parallel.rank_group import as_bytes


class Array(msgspec.Struct, frozen=True, array_like=True):
    """A host tensor."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, tensor: Tensor) -> Array:
        """Copy a tensor."""
        data = as_bytes(tensor.detach().cpu()).numpy().tobytes()
        return cls(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)

    def tensor(self) -> Tensor:
        """A copy that may be written."""
        dtype = getattr(torch, self.dtype)
        if not self.data:
            return torch.empty(self.shape, dtype=dtype)
        return torch.frombuffer(bytearray(self.data), dtype=dtype).view(self.shape)


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Become a rank; the others are met at the file `meeting`."""

    rank: int
    size: int
    meeting: str
    config: bytes

    @classmethod
    def of(cls, config: EngineConfig, *, rank: int, meeting: Path) -> Join:
        """Without what concerns the lead alone: addresses, secrets, drafters."""
        cache = CacheConfig(
            memory_bytes=config.cache.memory_bytes,
            chunk_tokens=config.cache.chunk_tokens,
            payload=config.cache.payload,
        )
        own = msgspec.msgpack.encode(replace(config, cache=cache, drafters=()), enc_hook=str)
        return cls(rank, config.tensor_parallel, str(meeting), own)

    def engine_config(self) -> EngineConfig:
        """The configuration of this rank."""
        return msgspec.msgpack.decode(self.config, type=EngineConfig, dec_hook=_decode_path)


class Step(msgspec.Struct, frozen=True, tag="step"):
    """Compute a step. parts: rows with logits, and whether all of their logits are wanted."""

    inputs: dict[str, Array]
    shared: dict[str, Array] | None
    parts: tuple[tuple[int, int, bool], ...]

    @classmethod
    def of(cls, batch: ForwardBatch, wants_logits: Sequence[bool]) -> Step:
        """Of a batch on the host; wants_logits: one for each of its verified parts"""
        shared = None if batch.shared is None else _packed(batch.shared, _SHARED)
        parts = zip(batch.verified, wants_logits, strict=True)
        bounds = tuple((part.start, part.stop, wanted) for part, wanted in parts)
        return cls(_packed(batch, INPUTS), shared, bounds)

    def batch(self) -> ForwardBatch:
        """The batch without what verification reads."""
        shared = None if self.shared is None else SharedKV(**_unpacked(self.shared))
        return ForwardBatch(**_unpacked(self.inputs), shared=shared)


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Look up embeddings, which a drafter wants."""

    token_ids: Array


class Head(msgspec.Struct, frozen=True, tag="head"):
    """Compute logits of hidden rows, which a drafter wants."""

    rows: Array


class CopyOut(msgspec.Struct, frozen=True, tag="copy_out"):
    """Send the keys and values of a chunk's blocks to the lead."""

    block_ids: tuple[int, ...]


class CopyIn(msgspec.Struct, frozen=True, tag="copy_in"):
    """Fill blocks with those of a chunk that the lead sends, from `first_block` on."""

    block_ids: tuple[int, ...]
    first_block: int


class Present(msgspec.Struct, frozen=True, tag="present"):
    """The process has started and goes to meet the others."""


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The rank cannot go on."""

    reason: str


LeadFrame = Join | Step | Embed | Head | CopyOut | CopyIn
RankFrame = Present | Broken

_SHARED = tuple(field.name for field in fields(SharedKV))


def _packed(value: object, names: Sequence[str]) -> dict[str, Array]:
    return {name: Array.of(getattr(value, name)) for name in names}


def _unpacked(arrays: Mapping[str, Array]) -> dict[str, Any]:
    return {name: array.tensor() for name, array in arrays.items()}


def _decode_path(kind: type, value: Any) -> Any:
    return Path(value) if kind is Path else value
