"""A runner without a device: real packing and reading, and the time that a device would take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batching.cache.kv_transfer import KVTransfer
from batching.config import ModelInfo
from batching.model.cuda_graphs import GraphGrid
from batching.model.forward_batch import ForwardBatch
from batching.model.staging import Staging
from batching.model.static_batch import StaticBatch
from batching.model.turning_buffers import TurningBuffers
from batching.model.verifier import read_outcome
from batching.step_plan import StepPlan, StepResult
from benchmarks.device_model.answers import written_tokens
from kernels.attention_work import AttentionHeads

_CPU = torch.device("cpu")
_HEADS = AttentionHeads(num_groups=7, num_kv_heads=4, head_dim=128)  # of a 7B model
_NO_TOKEN = -1
# A thread that sleeps wakes up late, so the last of the time is waited for awake.
_AWAKE_S = 3e-4


class NullRunner:
    """Writes known answers, `answer_of` a request id, after `step_s` of each plan.

    What a host does for a step is done: the batch is packed into the buffers of a graph, and the
    outcome is read. Steps are computed one after the other. `device_s` adds up what the device
    would have taken, `simulated_s` what the answers cost, which the clock leaves out;
    `num_padded_rows` are rows with their padding.
    """

    kv_transfer: KVTransfer | None = None
    kv_namespace = b""

    def __init__(
        self,
        answer_of: Callable[[str], Sequence[int]],
        step_s: Callable[[StepPlan], float],
        *,
        num_blocks: int,
        block_size: int,
        max_rows: int,
        max_requests: int,
        max_position: int,
        may_sleep: bool = True,
    ) -> None:
        """Without sleep the thread stays awake while a device would work."""
        self.num_blocks = num_blocks
        self.reset()
        self._free_at = 0.0
        self._answer_of = answer_of
        self._step_s = step_s
        self._staging = Staging(_CPU)
        self._awake_s = _AWAKE_S if may_sleep else math.inf
        self._block_size = block_size
        self._max_requests = max_requests
        self._max_blocks = -(-max_position // block_size)
        self._grid = GraphGrid.build(max_rows=max_rows)
        sizes = map(self._make_static, self._grid.row_sizes)
        self._buffers = TurningBuffers(max(one.num_bytes for one in sizes), _CPU)
        self._static: dict[int, StaticBatch] = {}
        self.model_info = ModelInfo(
            max_position=max_position,
            vocab_size=152_064,
            kv_bytes_per_token=1,
            num_kv_tokens=num_blocks * block_size,
            dtype="bfloat16",
            num_parameters=0,
            fingerprint="null",
        )

    def launch(self, plan: StepPlan) -> NullStep:
        """Pack a step as for a graph, and begin to wait for it behind those before it."""
        batch = ForwardBatch.from_plan(plan, block_size=self._block_size)
        num_rows = plan.num_tokens
        if len(plan.entries) <= self._max_requests:  # else a device would take it without a graph
            found = self._grid.find(num_rows)
            assert found is not None, "no step has more rows than the grid"
            num_rows = found
            self._static_of(num_rows).fill(batch)
        self._staging.send(batch.verified)
        began = time.perf_counter()
        outcome = self.outcome_of(plan)
        seconds = self._step_s(plan)
        self.simulated_s += time.perf_counter() - began
        self._free_at = max(self.now(), self._free_at) + seconds
        self.device_s += seconds
        self.num_rows += plan.num_tokens
        self.num_padded_rows += num_rows
        self.num_steps += 1
        return NullStep(
            outcome,
            partial(read_outcome, plan=plan, batch=batch),
            seconds=seconds,
            end=self._free_at,
            now=self.now,
            awake_s=self._awake_s,
        )

    def reset(self) -> None:
        """Begin to count."""
        self.device_s = self.simulated_s = 0.0
        self.num_rows = self.num_padded_rows = self.num_steps = 0

    def now(self) -> float:
        """Seconds on a clock that stands still while answers are made up."""
        return time.perf_counter() - self.simulated_s

    def _static_of(self, num_rows: int) -> StaticBatch:
        if num_rows not in self._static:
            began = time.perf_counter()
            self._static[num_rows] = self._make_static(num_rows)
            self._static[num_rows].bind(self._buffers)
            self.simulated_s += time.perf_counter() - began
        return self._static[num_rows]

    def _make_static(self, num_rows: int) -> StaticBatch:
        return StaticBatch(
            num_rows=num_rows,
            max_requests=min(num_rows, self._max_requests),
            max_blocks=self._max_blocks,
            block_size=self._block_size,
            heads=_HEADS,
        )

    def outcome_of(self, plan: StepPlan) -> NDArray[Any]:
        """The tokens of all rows, then how many drafts of each request and branch hold."""
        tokens: list[int] = []
        accepted: list[int] = []
        for scheduled in plan.entries:
            if scheduled.has_logits:
                written = written_tokens(scheduled, self._answer_of(scheduled.request_id))
                tokens += written
                tokens += [_NO_TOKEN] * (1 + len(scheduled.draft_token_ids) - len(written))
                accepted.append(len(written) - 1)
        return np.array(tokens + accepted, dtype=np.int64)


class NullStep:
    """A step of a device that is not there."""

    leaves_time = True

    def __init__(
        self,
        outcome: NDArray[Any],
        read: Callable[[NDArray[Any]], StepResult],
        *,
        seconds: float,
        end: float,
        now: Callable[[], float],
        awake_s: float,
    ) -> None:
        self.seconds = seconds
        self._outcome = outcome
        self._read = read
        self._end = end
        self._now = now
        self._awake_s = awake_s

    def is_done(self) -> bool:
        """True if the device would have come to the end."""
        return self._now() >= self._end

    def wait(self) -> StepResult:
        """The outcome, once a device would have it."""
        self.pause()
        return self._read(self._outcome)

    def pause(self) -> None:
        """Wait until a device would be done."""
        while (left_s := self._end - self._now()) > 0:
            if left_s > self._awake_s:
                time.sleep(left_s - self._awake_s)
