"""Times of work on a device, and what the device can do at best."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_FLUSHED_BYTES = 256 << 20  # more than any level-2 cache
_COPIED_BYTES = {"cuda": 4 << 30, "cpu": 64 << 20}
_MATRIX_SIZE = {"cuda": 8192, "cpu": 512}
_NUM_WARM_UPS = 3
_NUM_REPEATS = 20


@dataclass(frozen=True, slots=True)
class Roofline:
    """What was measured of a device: bytes read and written per second, operations per second."""

    bytes_per_s: float
    flops_per_s: float

    def floor_ms(self, *, num_bytes: float, num_flops: float) -> float:
        """The time that neither reading `num_bytes` nor computing `num_flops` can go below."""
        return 1e3 * max(num_bytes / self.bytes_per_s, num_flops / self.flops_per_s)


def measure_roofline(device: torch.device, dtype: torch.dtype) -> Roofline:
    """Copy a large tensor, and multiply two large matrices."""
    num_bytes = _COPIED_BYTES[device.type]
    source = torch.zeros(num_bytes // 2, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_ms = measure_ms(lambda: target.copy_(source), device)
    size = _MATRIX_SIZE[device.type]
    left = torch.randn(size, size, device=device).to(dtype)
    right = torch.randn(size, size, device=device).to(dtype)
    multiply_ms = measure_ms(lambda: left @ right, device)
    return Roofline(num_bytes / copy_ms * 1e3, 2 * size**3 / multiply_ms * 1e3)


def measure_ms(
    run: Callable[[], object], device: torch.device, *, repeats: int | None = None
) -> float:
    """The median time of one run in milliseconds, on a GPU with a cold cache and on its clock."""
    repeats = repeats or _NUM_REPEATS
    for _ in range(_NUM_WARM_UPS):
        run()
    if device.type != "cuda":
        return statistics.median(_host_ms(run) for _ in range(repeats))
    flushed = torch.empty(_FLUSHED_BYTES, dtype=torch.uint8, device=device)
    return statistics.median(_device_ms(run, flushed) for _ in range(repeats))


def _host_ms(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def _device_ms(run: Callable[[], object], flushed: Tensor) -> float:
    start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    stop = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    flushed.zero_()
    start.record()
    run()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop))
