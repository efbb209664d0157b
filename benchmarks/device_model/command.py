"""`python -m benchmarks device_model`: how busy the host would keep a GPU.

The engine serves real edits in a closed loop. Its runner packs every step and reads its outcome as
for a GPU, waits as long as a roofline says that a device would take, and writes the expected
answers. `busy` is the share of the time in which the device computes; `host` is what a step waits
for the host, in milliseconds; `padding` is what the sizes of graphs add to the rows of a step;
`edits/s` is also given for a device that takes no time at all.
**A simulation**: no step of a real device is as fast.

`--fit FILE` takes the device's constants from what `python -m benchmarks gpu --out FILE` measured,
and prints predicted and measured times; without case files nothing else is done.

With `--measured` nothing is simulated but the answers: steps run on the GPU that is there, with
random weights of the size of `--model`, and `graphs` is the share that ran in a graph,
and how many there are.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from apply_service.apply.errors import UsageError
from apply_service.evaluate.machine import describe_machine
from apply_service.observe.progress import tracked
from batching.config import SchedulerConfig
from batching.engine import Engine
from batching.model.runner import ModelRunner
from batching.step_costs import StepCosts
from batching.step_plan import StepPlan
from benchmarks.concurrency.batch_engine import BatchEngine
from benchmarks.device_model.constants import DEVICES, MODELS, Device, DeviceModel
from benchmarks.device_model.edits import Edit, read_edits
from benchmarks.device_model.fit import Point, fit_device, read_points
from benchmarks.device_model.measured_runner import MeasuredRunner, load_measured
from benchmarks.device_model.null_runner import NullRunner

_BLOCK_SIZE = 16
_MAX_POSITION = 32_768
_LEAST_EDITS = 48
_LEAST_WARM = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One closed loop and what came of it."""

    num_requests: int
    num_edits: int
    wall_s: float
    device_s: float
    num_steps: int
    num_rows: int
    num_padded_rows: int
    num_tokens: int

    @property
    def busy(self) -> float:
        """The share of the time in which the device computes."""
        return self.device_s / self.wall_s

    @property
    def host_ms(self) -> float:
        """Milliseconds of a step in which the device waits."""
        return 1e3 * (self.wall_s - self.device_s) / self.num_steps


def null_engine(
    runner: NullRunner | MeasuredRunner, *, max_running: int, max_rows: int, costs: StepCosts | None
) -> BatchEngine:
    """An engine over a runner that knows the answers."""
    config = SchedulerConfig(
        block_size=_BLOCK_SIZE, max_running=max_running, max_tokens_per_step=max_rows
    )
    return BatchEngine(Engine(config, cast(ModelRunner, cast(Any, runner)), costs=costs))


def answers_of(edits: Sequence[Edit]) -> Callable[[str], Sequence[int]]:
    """The answers of edits whose requests are called `…-<number>`."""
    return lambda request_id: edits[int(request_id.rpartition("-")[2])].answer


def null_runner(
    edits: Sequence[Edit], *, step_s: Any, max_rows: int, may_sleep: bool = True
) -> NullRunner:
    """A runner without a device that writes the answers of `edits`."""
    return NullRunner(
        answers_of(edits),
        step_s,
        num_blocks=(1 << 20) // _BLOCK_SIZE,
        block_size=_BLOCK_SIZE,
        max_rows=max_rows,
        max_requests=128,
        max_position=_MAX_POSITION,
        may_sleep=may_sleep,
    )


def run_load(
    edits: Sequence[Edit], num_requests: int, *, device: DeviceModel, max_rows: int, has_time: bool
) -> Load:
    """Keep so many edits under way until all are done, with a device or with none."""
    step_s = device.plan_s if has_time else _no_time
    runner = null_runner(edits, step_s=step_s, max_rows=max_rows)
    return closed_loop(edits, num_requests, runner=runner, costs=device.costs(), max_rows=max_rows)


def closed_loop(
    edits: Sequence[Edit],
    num_requests: int,
    *,
    runner: NullRunner | MeasuredRunner,
    costs: StepCosts,
    max_rows: int,
) -> Load:
    """Keep so many edits under way on a runner until all are done."""
    num_edits = max(_LEAST_EDITS, 3 * num_requests)

    def requests(name: str, count: int) -> list[Any]:
        return [
            partial(
                edits[at % len(edits)].request,
                f"{name}-{at}-{at % len(edits)}",
                max_draft_tokens=64,
            )
            for at in range(count)
        ]

    # Graphs are captured when a size comes up twice, which takes some time.
    num_warm = max(num_edits, _LEAST_WARM) if isinstance(runner, MeasuredRunner) else num_requests
    with null_engine(runner, max_running=num_requests, max_rows=max_rows, costs=costs) as engine:
        engine.run(requests("warm", num_warm), at_once=num_requests)
        runner.reset()
        run = engine.run(requests("run", num_edits), at_once=num_requests)
    return Load(
        num_requests=num_requests,
        num_edits=num_edits,
        wall_s=run.seconds - runner.simulated_s,
        device_s=runner.device_s,
        num_steps=runner.num_steps,
        num_rows=runner.num_rows,
        num_padded_rows=runner.num_padded_rows,
        num_tokens=run.stats.num_output_tokens,
    )


def add_device_model_command(subparsers: Any) -> None:
    """Register `device_model` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "device_model", help="how busy the host would keep a GPU", description=__doc__
    )
    parser.add_argument("cases", type=Path, nargs="*", help="case files, one JSON a line")
    parser.add_argument(
        "--fit", type=Path, nargs="+", metavar="FILE", help="reports of `benchmarks gpu`"
    )
    parser.add_argument("--device", choices=sorted(DEVICES), default="h200")
    parser.add_argument("--model", choices=sorted(MODELS), default="7b")
    parser.add_argument("--requests", type=_numbers, default=(1, 8, 16, 32, 64, 128))
    parser.add_argument("--edits", type=int, default=64, help="different edits")
    parser.add_argument("--max-tokens", type=int, default=4_096, help="of a prompt and its answer")
    parser.add_argument("--rows", type=int, default=4_096, help="rows of a step")
    parser.add_argument(
        "--measured", action="store_true", help="run the steps on the CUDA device that is there"
    )


def run_device_model(args: argparse.Namespace) -> int:
    """Fit a device, or run all loads, and print a table. Raises UsageError."""
    if not (args.cases or args.fit):
        raise UsageError("there is nothing to do; name case files, or --fit FILE")
    chosen = DEVICES[args.device]
    if args.fit:
        points = read_points(args.fit)
        chosen = fit_device(points)
        print(fit_table(chosen, points))
    if not args.cases:
        return 0
    device = DeviceModel(chosen, MODELS[args.model])
    edits = read_edits(args.cases, limit=args.edits, max_tokens=args.max_tokens)
    if args.measured:
        return _run_measured(args, edits)
    num_prompt = sum(len(edit.prompt.token_ids) for edit in edits) // len(edits)
    num_answer = sum(len(edit.answer) for edit in edits) // len(edits)
    processor = describe_machine(device="cpu", dtype="none")["processor"]
    print(f"{processor}; {args.device}: {device.device}; {args.model}: {device.model}")
    print(f"{len(edits)} edits, mean prompt {num_prompt} tokens, answer {num_answer}")
    print("| requests | busy | step ms | host ms | rows | padding | tokens/s | edits/s | alone |")
    print("|---|---|---|---|---|---|---|---|---|")
    for num_requests in tracked(args.requests, name=lambda number: f"{number} requests"):
        loads = [
            run_load(edits, num_requests, device=device, max_rows=args.rows, has_time=has_time)
            for has_time in (True, False)
        ]
        print(_row(*loads), flush=True)
    return 0


def _run_measured(args: argparse.Namespace, edits: Sequence[Edit]) -> int:
    """Run all loads on a real device, and print a table. Raises UsageError."""
    model_runner, costs = load_measured(
        args.model, max_rows=args.rows, max_requests=max(args.requests)
    )
    print(f"{describe_machine(device='cuda', dtype='bfloat16')}; {args.model}")
    print("costs, ms: " + ", ".join(f"{n} {ms:.2f}" for n, ms in costs.measured_ms.items()))
    print("| requests | busy | step ms | host ms | rows | steps | graphs | tokens/s | edits/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for num_requests in tracked(args.requests, name=lambda number: f"{number} requests"):
        runner = MeasuredRunner(model_runner, answers_of(edits))
        load = closed_loop(edits, num_requests, runner=runner, costs=costs, max_rows=args.rows)
        print(
            f"| {num_requests} | {load.busy:.1%} | {1e3 * load.device_s / load.num_steps:.2f}"
            f" | {load.host_ms:.2f} | {load.num_rows / load.num_steps:.0f} | {load.num_steps}"
            f" | {runner.graph_share:.0%} of {model_runner.num_graphs}"
            f" | {load.num_tokens / load.wall_s:,.0f}"
            f" | {load.num_edits / load.wall_s:.1f} |",
            flush=True,
        )
    return 0


def fit_table(device: Device, points: Sequence[Point]) -> str:
    """The fitted constants, and each step as predicted and as measured."""
    lines = [
        f"fitted: {device.bytes_per_s / 1e9:,.0f} GB/s, {device.flop_per_s / 1e12:,.0f} TFLOP/s,"
        f" {1e6 * device.launch_s:,.0f} µs a launch",
        "| step | predicted ms | measured ms | measured / predicted |",
        "|---|---|---|---|",
    ]
    ratios = []
    for point in points:
        predicted_s = point.predicted_s(device)
        ratios.append(point.seconds / predicted_s)
        lines.append(
            f"| {point.name} | {1e3 * predicted_s:.2f} | {1e3 * point.seconds:.2f}"
            f" | {ratios[-1]:.2f} |"
        )
    errors = [abs(ratio - 1) for ratio in ratios]
    lines.append(f"mean error {statistics.mean(errors):.1%}, largest {max(errors):.1%}")
    return "\n".join(lines)


def _row(load: Load, alone: Load) -> str:
    return (
        f"| {load.num_requests} | {load.busy:.1%} | {1e3 * load.device_s / load.num_steps:.2f}"
        f" | {load.host_ms:.2f} | {load.num_rows / load.num_steps:.0f}"
        f" | {load.num_padded_rows / load.num_rows - 1:.1%}"
        f" | {load.num_tokens / load.wall_s:,.0f} | {load.num_edits / load.wall_s:.1f}"
        f" | {alone.num_edits / alone.wall_s:.1f} |"
    )


def _no_time(_plan: StepPlan) -> float:
    return 0.0


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
