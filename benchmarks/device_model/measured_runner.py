"""A runner whose steps are computed by a real device and write known answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from apply_service.apply.errors import UsageError
from batching.config import Device, EngineConfig, SchedulerConfig
from batching.model.random_model import make_random_model
from batching.model.runner import ModelRunner
from batching.pending_step import PendingStep
from batching.step_costs import StepCosts
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens
from benchmarks.device_model.answers import written_tokens

_NOTHING = VerifiedTokens()


def load_measured(
    shape_name: str, *, max_rows: int, max_requests: int, device_name: Device = "cuda"
) -> tuple[ModelRunner, StepCosts]:
    """Random weights on a device, and what its steps cost, measured as at a start.

    Raises UsageError where there is no such device.
    """
    if device_name == "cuda" and not torch.cuda.is_available():
        raise UsageError("no CUDA device was found; leave --measured out for a simulation")
    config = EngineConfig(
        model_path=Path(shape_name),
        dtype="bfloat16",
        device=device_name,
        scheduler=SchedulerConfig(max_tokens_per_step=max_rows, max_running=max_requests),
    )
    loaded = make_random_model(shape_name, dtype="bfloat16", device=torch.device(device_name))
    runner = ModelRunner(config, loaded=loaded)
    runner.warm_up()
    return runner, runner.measure_costs()


class MeasuredRunner:
    """Random weights accept no draft, yet the time of a step does not depend on what it finds.

    So a step is launched, computed, verified and read as it is, and then the tokens of the answers,
    `answer_of` a request id, are put in the place of those that were found.
    """

    kv_transfer = None
    kv_namespace = b""
    num_padded_rows = 0  # nobody counts them here
    simulated_s = 0.0  # the answers are made up while the device works

    def __init__(self, runner: ModelRunner, answer_of: Callable[[str], Sequence[int]]) -> None:
        self.num_blocks = runner.num_blocks
        self.model_info = runner.model_info
        self._runner = runner
        self._answer_of = answer_of
        self.reset()

    def reset(self) -> None:
        """Begin to count."""
        self.device_s = 0.0
        self.num_rows = self.num_steps = 0
        self._graph_steps_before = self._runner.num_graph_steps

    @property
    def graph_share(self) -> float:
        """The share of the steps that ran in a graph."""
        return (self._runner.num_graph_steps - self._graph_steps_before) / self.num_steps

    def launch(self, plan: StepPlan) -> MeasuredStep:
        """Give a step to the device."""
        pending = self._runner.launch(plan)
        self.num_rows += plan.num_tokens
        self.num_steps += 1
        result = StepResult(tuple(map(self._verified, plan.scheduled)))
        return MeasuredStep(pending, result, self)

    def _verified(self, scheduled: ScheduledRequest) -> VerifiedTokens:
        if not scheduled.has_logits:
            return _NOTHING
        written = written_tokens(scheduled, self._answer_of(scheduled.request_id))
        return VerifiedTokens(tuple(written), len(written) - 1)


class MeasuredStep:
    """A step of a device with an outcome that was known before."""

    def __init__(self, pending: PendingStep, result: StepResult, runner: MeasuredRunner) -> None:
        self.leaves_time = pending.leaves_time
        self._pending = pending
        self._result = result
        self._runner = runner

    @property
    def seconds(self) -> float:
        """How long the device took, once it has been waited for."""
        return self._pending.seconds

    def is_done(self) -> bool:
        """True if `wait` would return at once."""
        return self._pending.is_done()

    def wait(self) -> StepResult:
        """The known outcome, once the device has come to its own."""
        self._pending.wait()
        self._runner.device_s += self._pending.seconds
        return self._result
