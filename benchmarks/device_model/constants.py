"""The seconds of a step on a device, by the bytes that it moves and what it multiplies.

A step takes max((weight bytes + KV bytes) / bandwidth, FLOP / peak) and its launch: a roofline
(Williams et al. 2009), so no real step is faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from batching.step_costs import CostRates, StepCosts, StepSize
from batching.step_plan import StepPlan

_ROW_COUNTS = (1, 8, 17, 33, 65, 129, 257, 513, 1025, 2049, 4097)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a device can do at most, and what a step costs besides."""

    bytes_per_s: float
    flop_per_s: float
    launch_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """Bytes and operations of a model in bfloat16; the head is read and used by verified rows."""

    layer_bytes: float
    head_bytes: float
    kv_bytes_per_token: float

    @property
    def layer_flop_per_row(self) -> float:
        """Two operations for each weight, of two bytes."""
        return self.layer_bytes

    @property
    def head_flop_per_row(self) -> float:
        """As above."""
        return self.head_bytes


# Data sheets of NVIDIA (H200 SXM, H100 SXM, A100 80 GB SXM, L4): memory bandwidth and dense
# bfloat16. A replayed graph with its copies takes some 20 µs (CUDA programming guide: launches of
# a graph's kernels cost a microsecond or less, the first one some 10).
DEVICES: Mapping[str, Device] = {
    "h200": Device(bytes_per_s=4.8e12, flop_per_s=989e12, launch_s=20e-6),
    "h100": Device(bytes_per_s=3.35e12, flop_per_s=989e12, launch_s=20e-6),
    "a100": Device(bytes_per_s=2.0e12, flop_per_s=312e12, launch_s=20e-6),
    "l4": Device(bytes_per_s=0.3e12, flop_per_s=121e12, launch_s=20e-6),
}
# Qwen2.5-7B and -1.5B (config.json): 28 layers each; 4 and 2 key/value heads of 128; a vocabulary
# of 152,064 and 151,936 over 3,584 and 1,536. The smaller one's head is its embedding.
MODELS: Mapping[str, ModelSize] = {
    "7b": ModelSize(
        layer_bytes=2 * 6.53e9, head_bytes=2 * 152_064 * 3_584, kv_bytes_per_token=57_344
    ),
    "1.5b": ModelSize(
        layer_bytes=2 * 1.31e9, head_bytes=2 * 151_936 * 1_536, kv_bytes_per_token=28_672
    ),
}


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """One model on one device."""

    device: Device
    model: ModelSize

    def step_s(self, size: StepSize, *, num_context_tokens: int) -> float:
        """Seconds of a step; `num_context_tokens` are those of all its requests together."""
        device = self.device
        num_bytes, flop = self.work_of(self.model, size, num_context_tokens=num_context_tokens)
        return max(num_bytes / device.bytes_per_s, flop / device.flop_per_s) + device.launch_s

    @staticmethod
    def work_of(
        model: ModelSize, size: StepSize, *, num_context_tokens: int
    ) -> tuple[float, float]:
        """The bytes that a step moves, and its operations."""
        num_verified = size.num_rows - size.num_plain_rows
        num_bytes = model.layer_bytes + model.kv_bytes_per_token * num_context_tokens
        num_bytes += model.head_bytes if num_verified else 0.0
        flop = model.layer_flop_per_row * size.num_rows + model.head_flop_per_row * num_verified
        return num_bytes, flop

    def plan_s(self, plan: StepPlan) -> float:
        """Seconds of a planned step."""
        num_context = sum(one.start + one.num_rows for one in plan.scheduled)
        return self.step_s(StepSize.of(plan), num_context_tokens=num_context)

    def costs(self) -> StepCosts:
        """What a measurement at start would say."""

        def step_ms(num_rows: int) -> float:
            size = StepSize(num_rows=num_rows, num_plain_rows=0, num_pairs=0, num_requests=1)
            return 1e3 * self.step_s(size, num_context_tokens=0)

        return StepCosts({count: step_ms(count) for count in _ROW_COUNTS}, rates=CostRates())
