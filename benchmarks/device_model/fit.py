"""Fits the constants of a device to steps that `python -m benchmarks gpu` has measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from apply_service.apply.errors import UsageError
from batching.step_costs import StepSize
from benchmarks.device_model.constants import MODELS, Device, DeviceModel

_MAX_ROUNDS = 50


class MeasuredStep(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a report: requests, drafted tokens, rows, and milliseconds."""

    batch: int
    k: int
    num_rows: int
    step_ms: float
    device_ms: float | None = None


class GpuReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `--out` of `python -m benchmarks gpu` holds, as far as it is read here."""

    shape: str
    context: int
    steps: list[MeasuredStep]
    device: str = "unknown"


@dataclass(frozen=True, slots=True)
class Point:
    """One measured step: what it moves and multiplies, and the seconds that it took."""

    name: str
    num_bytes: float
    flop: float
    seconds: float

    def predicted_s(self, device: Device) -> float:
        """What the device model says."""
        bound = max(self.num_bytes / device.bytes_per_s, self.flop / device.flop_per_s)
        return bound + device.launch_s


def read_points(paths: Sequence[Path]) -> list[Point]:
    """The steps of all reports. Raises UsageError."""
    points = []
    for path in paths:
        try:
            report = msgspec.json.decode(path.read_bytes(), type=GpuReport)
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(
                f"{path} is no report ({error}); write one with `python -m benchmarks gpu --out`"
            ) from error
        if report.shape not in MODELS:
            raise UsageError(f"{path} is of the shape {report.shape}; take {', '.join(MODELS)}")
        model = MODELS[report.shape]
        for step in report.steps:
            size = StepSize(
                num_rows=step.num_rows, num_plain_rows=0, num_pairs=0, num_requests=step.batch
            )
            num_bytes, flop = DeviceModel.work_of(
                model, size, num_context_tokens=step.batch * report.context
            )
            seconds = (step.device_ms or step.step_ms) / 1e3
            name = f"{report.shape}, {step.batch} × (1 + {step.k})"
            points.append(Point(name, num_bytes, flop, seconds))
    if len(points) < 3:
        raise UsageError(f"{len(points)} steps are too few to fit three constants; measure more")
    return points


def fit_device(points: Sequence[Point]) -> Device:
    """Bandwidth, peak and launch time with the least relative squared error.

    Alternates between saying which term bounds each step, and a linear fit of 1/bandwidth, 1/peak
    and the launch time, of which none may be below zero.
    """
    num_bytes = np.array([point.num_bytes for point in points])
    flop = np.array([point.flop for point in points])
    seconds = np.array([point.seconds for point in points])
    # To begin with, no step is faster than either bound.
    rates = np.array([np.min(seconds / num_bytes), np.min(seconds / flop), 0.0])
    for _ in range(_MAX_ROUNDS):
        is_memory = num_bytes * rates[0] >= flop * rates[1]
        columns = np.stack(
            [
                np.where(is_memory, num_bytes, 0.0),
                np.where(is_memory, 0.0, flop),
                np.ones(len(points)),
            ],
            axis=1,
        )
        fitted = _least_squares(columns / seconds[:, None], rates)
        if np.allclose(fitted, rates, rtol=1e-9, atol=0.0):
            break
        rates = fitted
    return Device(bytes_per_s=1 / rates[0], flop_per_s=1 / rates[1], launch_s=float(rates[2]))


def _least_squares(columns: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Rates whose relative predictions are nearest to 1; those without a step stay as before."""
    used = [at for at in range(columns.shape[1]) if columns[:, at].any()]
    scale = columns[:, used].max(axis=0)
    while True:
        solution, *_ = np.linalg.lstsq(columns[:, used] / scale, np.ones(len(columns)), rcond=None)
        if solution[-1] >= 0 or used[-1] != 2:
            break
        used, scale = used[:-1], scale[:-1]  # a launch takes no less than no time
    rates = before.copy()
    rates[2] = 0.0
    rates[used] = solution / scale
    return rates
