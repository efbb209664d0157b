"""A step that was given to the device and may still be under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from batching.step_plan import StepResult


class PendingStep(Protocol):
    """A launched step; the host may do work meanwhile that the outcome cannot change.

    leaves_time: whether the device computes while the host goes on
    """

    @property
    def leaves_time(self) -> bool: ...

    @property
    def features(self) -> Mapping[int, Tensor]:
        """Hidden rows of the pass by tap, for drafters; empty if none reads any."""
        ...

    @property
    def seconds(self) -> float:
        """How long the step took; known once it has been waited for."""
        ...

    def is_done(self) -> bool:
        """True if `wait` would return at once."""
        ...

    def wait(self) -> StepResult:
        """The outcome; raises what went wrong on the device. To be called once."""
        ...


class FinishedStep:
    """A step that the host has computed itself."""

    leaves_time = False

    def __init__(
        self, result: StepResult, seconds: float, features: Mapping[int, Tensor] | None = None
    ) -> None:
        self._result = result
        self.seconds = seconds
        self.features = features or {}

    def is_done(self) -> bool:
        """Always."""
        return True

    def wait(self) -> StepResult:
        """The outcome."""
        return self._result


class DeviceStep:
    """A step on a CUDA device, whose tokens are on their way to the host.

    It ends when `outcome`, a few numbers for each row, has been copied.
    """

    leaves_time = True

    def __init__(
        self,
        outcome: Tensor,
        read: Callable[[NDArray[Any]], StepResult],
        *,
        started: torch.cuda.Event,
        features: Mapping[int, Tensor] | None = None,
    ) -> None:
        """outcome: [n] int64 on the device; read: makes the result of its numbers."""
        self._host = torch.empty(outcome.shape, dtype=torch.int64, pin_memory=outcome.is_cuda)
        self._host.copy_(outcome, non_blocking=True)
        self._read = read
        self.features = features or {}
        self._started = started
        self._ended = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._ended.record()
        self.seconds = 0.0

    def is_done(self) -> bool:
        """True if the device has come to the end of the step."""
        return bool(self._ended.query())  # type: ignore[no-untyped-call]

    def wait(self) -> StepResult:
        """The outcome, once the device has it."""
        self._ended.synchronize()
        self.seconds = self._started.elapsed_time(self._ended) / 1e3
        return self._read(self._host.numpy())
