"""One pinned buffer through which all tensors of a step go to the device, in one copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

_ALIGNMENT = 16
_FIRST_BYTES = 1 << 16

T = TypeVar("T")


class Staging:
    """Buffers on the host and on the device that grow, except where graphs know their addresses.

    The copy may still be under way when a call returns, so wait for a step before the next one.
    """

    def __init__(self, device: torch.device, *, num_bytes: int = _FIRST_BYTES) -> None:
        self._device = device
        self._allocate(num_bytes)

    def send(self, value: T) -> T:
        """A dataclass of host tensors with all of them on the device; others as they are."""
        tensors: list[Tensor] = []
        _collect(value, tensors)
        sent: T = _rebuilt(value, iter(self.send_all(tensors)))
        return sent

    def send_all(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Host tensors on the device, valid until the next call."""
        offsets = [0]
        for tensor in tensors:
            end = offsets[-1] + tensor.nbytes
            offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        if offsets[-1] > self._host.shape[0]:
            self._allocate(2 * offsets[-1])
        for tensor, offset in zip(tensors, offsets, strict=False):
            flat = tensor.numpy().reshape(-1).view(np.uint8)
            self._array[offset : offset + len(flat)] = flat
        self._device_buffer[: offsets[-1]].copy_(self._host[: offsets[-1]], non_blocking=True)
        return [
            self._device_buffer[offset : offset + tensor.nbytes]
            .view(tensor.dtype)
            .view(tensor.shape)
            for tensor, offset in zip(tensors, offsets, strict=False)
        ]

    def _allocate(self, num_bytes: int) -> None:
        is_pinned = self._device.type == "cuda"
        self._host = torch.empty(num_bytes, dtype=torch.uint8, pin_memory=is_pinned)
        self._array = self._host.numpy()
        self._device_buffer = torch.empty(num_bytes, dtype=torch.uint8, device=self._device)


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, tuple):
        for one in value:
            _collect(one, found)
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            _collect(getattr(value, field.name), found)


def _rebuilt(value: Any, sent: Any) -> Any:
    if isinstance(value, Tensor):
        return next(sent)
    if isinstance(value, tuple):
        return tuple(_rebuilt(one, sent) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        changes = {
            field.name: _rebuilt(getattr(value, field.name), sent) for field in fields(value)
        }
        return replace(value, **changes)
    return value
