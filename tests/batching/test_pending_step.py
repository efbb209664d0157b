"""Steps that are under way, with the clock of a device that is not there."""

from __future__ import annotations

import pytest
import torch

from batching.pending_step import DeviceStep, FinishedStep
from batching.step_plan import StepResult, VerifiedTokens


class Event:
    """Stands for an event of CUDA; each has its time in milliseconds."""

    num_made = 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        Event.num_made += 1
        self.time_ms = 0.0
        self.is_passed = False

    def record(self) -> None:
        self.time_ms = 5.0

    def query(self) -> bool:
        return self.is_passed

    def synchronize(self) -> None:
        self.is_passed = True

    def elapsed_time(self, other: Event) -> float:
        return other.time_ms - self.time_ms


def test_a_step_on_a_device_is_read_when_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    started = Event(enable_timing=True)
    started.time_ms = 2.0
    step = DeviceStep(
        torch.tensor([7, 8, 1]),
        lambda numbers: StepResult((VerifiedTokens(tuple(numbers)),)),
        started=started,  # type: ignore[arg-type]
    )
    assert step.leaves_time
    assert not step.is_done()
    assert step.wait() == StepResult((VerifiedTokens((7, 8, 1)),))
    assert step.is_done()
    assert step.seconds == pytest.approx(3e-3)


def test_a_finished_step_is_done() -> None:
    result = StepResult(())
    step = FinishedStep(result, 0.5)
    assert step.is_done()
    assert not step.leaves_time
    assert step.wait() is result
    assert step.seconds == 0.5
