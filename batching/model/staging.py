"""One pinned buffer through which all tensors of a step go to the device, in one copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from batching.model.turning_buffers import TurningBuffers

_ALIGNMENT = 16
_FIRST_BYTES = 1 << 16

T = TypeVar("T")


class Staging:
    """Buffers on the host and on the device that grow.

    The copy may still be under way when a call returns.
    """

    def __init__(self, device: torch.device, *, num_bytes: int = _FIRST_BYTES) -> None:
        self._device = device
        self._buffers = TurningBuffers(num_bytes, device)

    def send(self, value: T) -> T:
        """A dataclass of host tensors with all of them on the device; others as they are."""
        tensors: list[Tensor] = []
        _collect(value, tensors)
        sent: T = _rebuilt(value, iter(self.send_all(tensors)))
        return sent

    def send_all(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Host tensors on the device, valid for what is launched before the next call."""
        offsets = [0]
        for tensor in tensors:
            end = offsets[-1] + tensor.nbytes
            offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        if offsets[-1] > self._buffers.device.shape[0]:
            # The memory of the old ones is not used again before their copies are over.
            self._buffers = TurningBuffers(2 * offsets[-1], self._device)
        array = self._buffers.hosts[self._buffers.take_turn()].numpy()
        for tensor, offset in zip(tensors, offsets, strict=False):
            flat = tensor.numpy().reshape(-1).view(np.uint8)
            array[offset : offset + len(flat)] = flat
        sent = self._buffers.send(offsets[-1])
        return [
            sent[offset : offset + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
            for tensor, offset in zip(tensors, offsets, strict=False)
        ]


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
