"""Chooses how a greedy step gets tokens from hidden rows: with logits, or without them.

Both give the same tokens, up to ties that another order of sums may break. Which one is faster
depends on the device and on the number of rows, so it is measured where there is a device to ask.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.op_set import Ops

# Rows of a decode, of drafts of one request, and of drafts of more and more of them.
_ROW_SIZES = (1, 4, 16, 34, 66, 130, 258, 514, 1026, 2050, 4098)
_NUM_WARM_UPS = 2
_NUM_REPEATS = 5

TimeMs = Callable[[Callable[[], object]], float]


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """Row counts, ascending, and for each of them whether logits are left out up to there.

    Nothing measured means that logits are written.
    """

    row_sizes: tuple[int, ...] = ()
    are_fused: tuple[bool, ...] = ()

    def is_fused(self, num_rows: int) -> bool:
        """True if a step of `num_rows` rows with logits leaves them out; by the next size above."""
        if not self.row_sizes:
            return False
        at = bisect.bisect_left(self.row_sizes, num_rows)
        return self.are_fused[min(at, len(self.row_sizes) - 1)]


def measure_head_choice(
    weight: Tensor, *, ops: Ops, max_rows: int, time_ms: TimeMs | None = None
) -> HeadChoice:
    """Time both ways for steps of up to `max_rows` rows and take the faster one for each size.

    weight: [vocab_size, hidden_size] of the head, on the device that is asked
    """
    greedy_head, time_ms = ops.greedy_head, time_ms or device_ms
    if greedy_head is None:
        return HeadChoice()
    row_sizes = (*(size for size in _ROW_SIZES if size < max_rows), max_rows)
    are_fused = []
    for num_rows in row_sizes:
        hidden = torch.randn(num_rows, weight.shape[1], device=weight.device).to(weight.dtype)
        drafts = torch.full((num_rows,), -1, device=weight.device)
        cu_rows = torch.tensor([0, num_rows], device=weight.device)

        def write_logits(
            hidden: Tensor = hidden, drafts: Tensor = drafts, cu_rows: Tensor = cu_rows
        ) -> object:
            return greedy_head(hidden, weight, drafts, cu_rows=cu_rows, writes_logits=True)

        def leave_out(
            hidden: Tensor = hidden, drafts: Tensor = drafts, cu_rows: Tensor = cu_rows
        ) -> object:
            return greedy_head(hidden, weight, drafts, cu_rows=cu_rows, writes_logits=False)

        are_fused.append(time_ms(leave_out) < time_ms(write_logits))
    return HeadChoice(row_sizes, tuple(are_fused))


def device_ms(run: Callable[[], object]) -> float:
    """The shortest of a few runs on the current CUDA device, in milliseconds of its clock."""
    for _ in range(_NUM_WARM_UPS):
        run()
    times = []
    for _ in range(_NUM_REPEATS):
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        stop = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(float(start.elapsed_time(stop)))
    return min(times)
