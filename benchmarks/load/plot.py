"""The stages of the load bench as a picture. matplotlib is needed only here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.growth.plot import PlotError, check_can_plot
from benchmarks.load.stages import LoadStage

_PERCENTILES = {"p50_s": "solid", "p90_s": "dashed", "p99_s": "dotted"}


def check_plot_file(path: Path) -> None:
    """Raise PlotError if matplotlib is missing or the file could not be written."""
    check_can_plot()
    if path.suffix != ".png" or not path.parent.is_dir():
        raise PlotError(f"--plot {path} is no place for a picture; name a .png in a folder")


def plot_stages(stages: Sequence[LoadStage], path: Path) -> None:
    """Latency by percentiles and goodput over the rate, one colour a mode. Raises PlotError."""
    check_plot_file(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    latency, goodput = figure.subplots(1, 2)
    for number, mode in enumerate(dict.fromkeys(stage.mode for stage in stages)):
        of_mode = sorted(
            (stage for stage in stages if stage.mode == mode), key=lambda stage: stage.rate
        )
        rates = [stage.rate for stage in of_mode]
        for name, style in _PERCENTILES.items():
            seconds = [getattr(stage, name) for stage in of_mode]
            label = f"{mode}, {name.removesuffix('_s')}"
            latency.plot(
                rates, seconds, color=f"C{number}", linestyle=style, marker="o", label=label
            )
        goodput.plot(rates, [stage.goodput for stage in of_mode], marker="o", label=mode)
    all_rates = sorted({stage.rate for stage in stages})
    goodput.plot(all_rates, all_rates, color="grey", linestyle="dashed", label="offered")
    latency.set_ylabel("seconds since the scheduled arrival")
    goodput.set_ylabel("answers within the deadline, a second")
    latency.set_yscale("log")
    goodput.set_yscale("log", base=2)
    for plot in (latency, goodput):
        plot.set_xscale("log", base=2)
        plot.set_xlabel("requests a second")
        plot.grid(visible=True, alpha=0.3)
        plot.legend(fontsize="small")
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise PlotError(f"{path}: {error.strerror}; name a file that can be written") from error
