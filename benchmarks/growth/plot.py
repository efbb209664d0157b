"""The rows of `benchmarks growth` as pictures. matplotlib is needed only here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from apply_service.apply.errors import ApplyError
from benchmarks.growth.axes import GrowthPoint

_LABELS = {
    "file": "lines of the file",
    "edit": "new lines of the edit",
    "concurrency": "edits at once",
    "k": "k, longest draft in tokens",
}
_PARTS = {
    "edit_s": "whole edit",
    "model_s": "model",
    "plan_s": "planning and prompts",
    "verdict_s": "verdict",
}


class PlotError(ApplyError):
    """A picture cannot be made."""


def check_can_plot() -> None:
    """Raise PlotError if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise PlotError(
            "--plot needs matplotlib, which is not installed; install the extra `dev`, or"
            " matplotlib itself, or leave --plot out"
        )


def check_plot_folder(folder: Path) -> None:
    """Make the folder if it is not there. Raises PlotError if nothing can be drawn into it."""
    check_can_plot()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _folder_error(folder, error) from error


def plot_rows(rows: Sequence[GrowthPoint], folder: Path) -> list[Path]:
    """One PNG an axis, `growth-AXIS.png` in `folder`; the files. Raises PlotError."""
    check_plot_folder(folder)
    from matplotlib.figure import Figure

    paths = []
    try:
        for axis in dict.fromkeys(row.axis for row in rows):
            figure = Figure(figsize=(10, 4.2), layout="constrained")
            seconds, other = figure.subplots(1, 2)
            points = [row for row in rows if row.axis == axis]
            _draw(seconds, other, points)
            for plot in (seconds, other):
                plot.set_xlabel(_LABELS[axis])
                plot.grid(visible=True, alpha=0.3)
                plot.legend()
            paths.append(folder / f"growth-{axis}.png")
            figure.savefig(paths[-1], dpi=120)
    except OSError as error:
        raise _folder_error(folder, error) from error
    return paths


def _folder_error(folder: Path, error: OSError) -> PlotError:
    return PlotError(f"{folder}: {error.strerror}; name a folder that can be written to")


def _draw(seconds: Any, other: Any, points: Sequence[GrowthPoint]) -> None:
    """Seconds on the left; on the right what explains them."""
    axis = points[0].axis
    if axis == "k":
        for budget in dict.fromkeys(point.draft_budget for point in points):
            of_budget = [point for point in points if point.draft_budget == budget]
            _line(seconds, of_budget, [point.edit_s for point in of_budget], budget)
            tokens = [point.answer_tokens / point.target_passes for point in of_budget]
            _line(other, of_budget, tokens, budget)
        other.set_ylabel("tokens per target pass")
    elif axis == "concurrency":
        _line(seconds, points, [point.edit_s for point in points], "median edit")
        _line(seconds, points, [point.slowest_s for point in points], "slowest edit")
        _line(other, points, [point.edits_per_s for point in points], "edits a second")
        other.set_ylim(bottom=0)
    else:
        for name, label in _PARTS.items():
            _line(seconds, points, [getattr(point, name) for point in points], label)
        _line(other, points, [point.prompt_tokens for point in points], "tokens of the prompt")
        _line(other, points, [point.answer_tokens for point in points], "tokens of the answer")
        other.set_ylim(bottom=0)
    seconds.set_ylabel("seconds")
    seconds.set_yscale("log")
    for ticks in (seconds.yaxis.set_major_formatter, seconds.yaxis.set_minor_formatter):
        ticks("{x:g}")
    values = sorted({point.value for point in points})
    for plot in (seconds, other):
        if axis == "k":
            plot.set_xscale("symlog", base=2, linthresh=1)
        else:
            plot.set_xscale("log")
        plot.set_xticks(values, labels=[f"{value:,}" for value in values])
        plot.set_xticks([], minor=True)
        plot.margins(x=0.05)


def _line(plot: Any, points: Sequence[GrowthPoint], values: Sequence[float], label: str) -> None:
    plot.plot([point.value for point in points], values, marker="o", markersize=4, label=label)
