"""Pinned memory on the host whose content goes to one place on a device, step after step."""

from __future__ import annotations

import torch
from torch import Tensor

# While a step computes, the next one is filled.
NUM_TURNS = 2


class TurningBuffers:
    """Buffers on the host that take turns, and one on the device.

    A copy may still be under way, behind earlier steps, when the next step is filled: into the
    other buffer. The device's buffer is read and written in the order of its stream.

    hosts: [num_bytes] uint8 each, pinned for CUDA; device: [num_bytes] uint8
    """

    def __init__(self, num_bytes: int, device: torch.device) -> None:
        is_cuda = device.type == "cuda"
        self.hosts = tuple(
            torch.zeros(num_bytes, dtype=torch.uint8, pin_memory=is_cuda) for _ in range(NUM_TURNS)
        )
        self.device = torch.zeros(num_bytes, dtype=torch.uint8, device=device)
        self._copied: list[torch.cuda.Event | None] = [None] * NUM_TURNS
        self._turn = 0

    def take_turn(self) -> int:
        """The index of the buffer to fill now; waits if its last copy is still under way."""
        self._turn = (self._turn + 1) % NUM_TURNS
        copied = self._copied[self._turn]
        if copied is not None:
            copied.synchronize()
        return self._turn

    def send(self, num_bytes: int) -> Tensor:
        """Copy the beginning of the buffer that was filled last; the same bytes on the device."""
        sent = self.device[:num_bytes]
        sent.copy_(self.hosts[self._turn][:num_bytes], non_blocking=True)
        if self.device.is_cuda:
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record()
            self._copied[self._turn] = copied
        return sent
