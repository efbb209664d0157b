"""Steps of a model runner with drafts whose acceptance is given and not found out.

Random weights accept no draft, yet the time of a step does not depend on what it finds. Each step
computes and verifies all rows; how far a request moves on is then read from a trace.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from batching.model.loading import ModelShape
from batching.model.runner import ModelRunner
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from benchmarks.gpu.clock import Roofline
from lookup.proposer import Draft

BLOCK_SIZE = 16
_NUM_WARM_UPS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Steps of `batch` requests with drafts of `k`; times in milliseconds, medians of a step.

    device_ms: from the first to the last work of the device, None off a GPU
    host_ms: in which the host works for a step, planning and commit left out; None off a GPU
    graph_share: share of the steps that ran in a graph
    floor_ms: what the roofline allows for weights, keys and values, and operations of these rows
    """

    batch: int
    k: int
    num_rows: int
    step_ms: float
    device_ms: float | None
    host_ms: float | None
    graph_share: float
    floor_ms: float
    rows_per_s: float
    accepted_per_s: float

    @property
    def floor_ratio(self) -> float:
        """How many times the floor a step takes."""
        return self.step_ms / self.floor_ms


def max_tokens(context: int, k: int) -> int:
    """Tokens that a request may come to: a few steps from its first context."""
    return context + 4 * (k + 1)


class StepBench:
    """Drives a runner through plans of its own; request i has blocks of its own."""

    def __init__(
        self,
        runner: ModelRunner,
        shape: ModelShape,
        *,
        roofline: Roofline,
        context: int,
        device: torch.device,
        trace: Sequence[float],
    ) -> None:
        """context: tokens before the first step; trace: shares of a draft that hold, in turn."""
        self._runner = runner
        self._shape = shape
        self._roofline = roofline
        self._context = context
        self._device = device
        self._trace = trace

    def measure(self, *, batch: int, k: int, num_steps: int) -> StepTimes:
        """Time steps of one size."""
        accepted: list[int] = []
        clocks: list[_StepClock] = []
        positions = [self._context] * batch
        num_graph_steps = 0
        for step in range(_NUM_WARM_UPS + num_steps):
            if step == _NUM_WARM_UPS:
                num_graph_steps = self._runner.num_graph_steps
            clocks.append(_StepClock.run(self._runner, self._plan(positions, k)))
            for request in range(batch):
                held = round(k * self._trace[(step + request) % len(self._trace)])
                accepted.append(held)
                positions[request] = self._moved_on(positions[request], held + 1, k)
        num_graph_steps = self._runner.num_graph_steps - num_graph_steps
        timed = clocks[_NUM_WARM_UPS:]
        step_ms = statistics.median(clock.step_ms for clock in timed)
        is_gpu = self._device.type == "cuda"
        num_rows = batch * (k + 1)
        return StepTimes(
            batch=batch,
            k=k,
            num_rows=num_rows,
            step_ms=step_ms,
            device_ms=statistics.median(clock.device_ms for clock in timed) if is_gpu else None,
            host_ms=statistics.median(clock.host_ms for clock in timed) if is_gpu else None,
            graph_share=num_graph_steps / num_steps,
            floor_ms=self._floor_ms(batch, num_rows),
            rows_per_s=num_rows / step_ms * 1e3,
            # The token behind the accepted ones is written too, but no draft was accepted for it.
            accepted_per_s=statistics.mean(accepted) * batch / step_ms * 1e3,
        )

    def _moved_on(self, position: int, num_tokens: int, k: int) -> int:
        """Back to the first context before the blocks of a request are full."""
        position += num_tokens
        return position if position + k < max_tokens(self._context, k) else self._context

    def _plan(self, positions: Sequence[int], k: int) -> StepPlan:
        num_blocks = -(-max_tokens(self._context, k) // BLOCK_SIZE)
        scheduled = []
        for request, position in enumerate(positions):
            first_block = request * num_blocks
            scheduled.append(
                ScheduledRequest(
                    request_id=str(request),
                    token_ids=(1,),
                    start=position,
                    block_ids=tuple(range(first_block, first_block + num_blocks)),
                    draft=Draft((2,) * k, "trace", 0) if k else None,
                    has_logits=True,
                    output_position=0,
                    sampling=SamplingParams(max_tokens=k + 1),
                )
            )
        return StepPlan(tuple(scheduled))

    def _floor_ms(self, batch: int, num_rows: int) -> float:
        info = self._runner.model_info
        itemsize = getattr(torch, info.dtype).itemsize
        # Every weight is read once and used for each row, those of the embedding as the LM head.
        num_embedded = info.vocab_size * self._shape.hidden_size
        num_read = info.num_parameters - (0 if self._shape.has_tied_embeddings else num_embedded)
        kv_bytes = batch * self._context * info.kv_bytes_per_token
        return self._roofline.floor_ms(
            num_bytes=num_read * itemsize + kv_bytes, num_flops=2 * num_read * num_rows
        )


@dataclass(frozen=True, slots=True)
class _StepClock:
    """Times of one step in milliseconds."""

    step_ms: float
    host_ms: float
    device_ms: float

    @classmethod
    def run(cls, runner: ModelRunner, plan: StepPlan) -> _StepClock:
        """Run a step; the host only looks on between its launch and its end."""
        began = time.perf_counter()
        pending = runner.launch(plan)
        launched = time.perf_counter()
        while not pending.is_done():
            pass
        done = time.perf_counter()
        pending.wait()
        ended = time.perf_counter()
        return cls(
            step_ms=(ended - began) * 1e3,
            host_ms=(launched - began + ended - done) * 1e3,
            device_ms=pending.seconds * 1e3,
        )
