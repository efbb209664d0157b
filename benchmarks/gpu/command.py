"""`python -m benchmarks gpu`: steps of real sizes with random weights against the roofline.

Verification steps of `k` drafted tokens for several requests at once run on weights of real sizes.
What share of a draft holds is read from a trace, a file with one share a line (`--trace`). The
default has 128 drafts of 64 tokens that `benchmarks drafters` saw on real edits; 0.97 held.
The floor of a step is the time that the device takes at least to read weights, keys and values, or
to multiply; both rates are measured first. Host ms is the time of a step that the host works for
it, graph the share of steps that ran in a CUDA graph. Prompt lookup is that of transformers, for
one request, with the same trace.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import msgspec
import torch

from apply_service.apply.errors import ApplyError
from apply_service.evaluate.machine import describe_machine
from apply_service.observe.progress import tracked
from batching.config import EngineConfig, SchedulerConfig
from batching.model.loading import ModelShape
from batching.model.random_model import MAX_POSITION, SHAPE_NAMES, make_random_model
from batching.model.runner import DeviceModel, ModelRunner
from benchmarks.gpu.attention import AttentionTimes, measure_attention
from benchmarks.gpu.clock import Roofline, measure_roofline
from benchmarks.gpu.lookup import NUM_LOOKUP_TOKENS, LookupTimes, measure_lookup
from benchmarks.gpu.steps import BLOCK_SIZE, StepBench, StepTimes, max_tokens

_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_ATTENTION_ROWS = (1, 65, 257)
_RECORDED_TRACE = Path(__file__).with_name("acceptance_trace.txt")


class GpuBenchError(ApplyError):
    """The bench cannot run as asked."""


def add_gpu_command(subparsers: Any) -> None:
    """Register `gpu` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "gpu", help="time steps and attention on a GPU with random weights", description=__doc__
    )
    parser.add_argument("--shape", choices=SHAPE_NAMES, default="7b", help="sizes of the model")
    parser.add_argument("--dtype", choices=list(_DTYPES), default="bf16")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument(
        "--k", type=_counts, default=(0, 8, 16, 32, 64, 128), help="draft lengths, with commas"
    )
    parser.add_argument(
        "--batch", type=_sizes, default=(1, 2, 4, 8, 16, 32, 64), help="requests, with commas"
    )
    parser.add_argument("--context", type=_size, default=2048, help="tokens before the first step")
    parser.add_argument(
        "--attention-context",
        type=_contexts,
        default=(2048, 8192),
        help="contexts, with commas; none leaves the kernel out",
    )
    parser.add_argument("--steps", type=_size, default=50, help="steps to time of each size")
    parser.add_argument(
        "--lookup-tokens",
        type=_count,
        default=512,
        help="tokens that prompt lookup writes; 0 leaves it out",
    )
    parser.add_argument("--no-graphs", action="store_true", help="launch each kernel")
    parser.add_argument(
        "--weights", choices=["plain", "fp8"], default="plain", help="format of the layers' weights"
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="shares of drafts that hold")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write them as JSON, too")


def run_gpu(args: argparse.Namespace) -> int:
    """Run the bench and print its figures."""
    if args.device == "cuda" and not torch.cuda.is_available():
        raise GpuBenchError(
            "no CUDA device was found; run on a machine with an NVIDIA GPU, or try the bench itself"
            " with --device cpu --shape tiny --dtype fp32"
        )
    longest = max((max_tokens(args.context, max(args.k)), *args.attention_context))
    if longest > MAX_POSITION:
        raise GpuBenchError(
            f"contexts of up to {longest} tokens are asked for, with drafts, and the limit is"
            f" {MAX_POSITION}; lower --context, --attention-context or --k"
        )
    if args.out is not None and not args.out.parent.is_dir():
        raise GpuBenchError(f"{args.out.parent} is no folder; make it, or give another --out")
    report: dict[str, Any] = {}
    for report in _measure(args):
        figures = msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
        if args.out is not None:  # after each part: a machine may be taken away at any time
            args.out.write_text(figures + "\n", encoding="utf-8")
    print(figures if args.json else format_gpu_report(report))
    return 0


def read_trace(path: Path) -> tuple[float, ...]:
    """The shares in a file, one a line; raises GpuBenchError for anything but numbers in 0..1."""
    try:
        shares = tuple(float(line) for line in path.read_text(encoding="utf-8").split())
    except (OSError, ValueError) as error:
        raise GpuBenchError(f"{path} is no trace ({error}); give one number a line") from error
    if not shares or not all(0.0 <= share <= 1.0 for share in shares):
        raise GpuBenchError(f"{path} is no trace; give numbers from 0 to 1, one a line")
    return shares


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number; give one of 0 or more")
    return int(text)


def _size(text: str) -> int:
    if _count(text) == 0:
        raise argparse.ArgumentTypeError("0 is too small; give a number of 1 or more")
    return _count(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(_count, text.split(",")))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(_size, text.split(",")))


def _contexts(text: str) -> tuple[int, ...]:
    return () if text == "none" else _sizes(text)


def _measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The report after each part: the first steps first, the rival, which takes longest, last."""
    device, dtype_name = torch.device(args.device), _DTYPES[args.dtype]
    trace = read_trace(args.trace or _RECORDED_TRACE)
    roofline = measure_roofline(device, getattr(torch, dtype_name))
    loaded = make_random_model(args.shape, dtype=dtype_name, device=device)  # type: ignore[arg-type]
    if args.weights == "fp8":
        quantise_fp8(loaded)
    runner = _make_runner(args, loaded)
    print("capturing graphs" if args.device == "cuda" else "warming up", file=sys.stderr)
    began = time.perf_counter()
    runner.warm_up()
    report: dict[str, Any] = {
        "shape": args.shape,
        **describe_machine(device=args.device, dtype=dtype_name),
        "weights": args.weights,
        "context": args.context,
        "acceptance": sum(trace) / len(trace),
        "roofline": roofline,
        "warm_up_s": time.perf_counter() - began,
        "num_graphs": runner.num_graphs,
        "head_choice": runner.head_choice,
        "steps": [],
        "prompt_lookup": [],
        "attention": [],
    }
    bench = StepBench(
        runner, loaded.shape, roofline=roofline, context=args.context, device=device, trace=trace
    )
    sizes = [(batch, k) for batch in args.batch for k in args.k]
    for batch, k in tracked(sizes, name=lambda size: f"batch {size[0]}, k {size[1]}"):
        times = bench.measure(batch=batch, k=k, num_steps=args.steps)
        report["steps"].append(_with_ratio(times))
        report["num_graphs"] = runner.num_graphs
        yield report
    report["attention"] = _measure_attention(args, loaded.shape, roofline)
    yield report
    del bench, runner, loaded
    gc.collect()  # a model refers to itself
    report["prompt_lookup"] = [
        {**msgspec.to_builtins(times), "tokens_per_s": times.tokens_per_s}
        for times in _measure_lookup(args, trace)
    ]
    yield report


def quantise_fp8(loaded: DeviceModel) -> None:
    """Store the weights of the layers in fp8 with a scale for each row, by torchao.

    Raises GpuBenchError where torchao is missing.
    """
    if find_spec("torchao") is None:
        raise GpuBenchError("--weights fp8 needs torchao; install it, or leave the flag out")
    quantization = import_module("torchao.quantization")
    config = quantization.Float8DynamicActivationFloat8WeightConfig(
        granularity=quantization.PerRow()
    )
    quantization.quantize_(loaded.model.model, config)
    # As transformers marks what it has loaded so.
    cast(Any, loaded.model.config).quantization_config = {"quant_method": "torchao"}


def _make_runner(args: argparse.Namespace, loaded: DeviceModel) -> ModelRunner:
    dtype_name = _DTYPES[args.dtype]
    num_blocks = -(-max_tokens(args.context, max(args.k)) // BLOCK_SIZE)
    num_kv_tokens = max(args.batch) * num_blocks * BLOCK_SIZE
    return ModelRunner(
        EngineConfig(
            model_path=Path(args.shape),
            dtype=dtype_name,  # type: ignore[arg-type]
            device=args.device,
            use_cuda_graphs=not args.no_graphs,
            kv_memory_bytes=num_kv_tokens
            * loaded.shape.kv_bytes_per_token(getattr(torch, dtype_name)),
            scheduler=SchedulerConfig(
                block_size=BLOCK_SIZE,
                max_tokens_per_step=max(args.batch) * (max(args.k) + 1),
                max_running=max(args.batch),
            ),
        ),
        loaded=loaded,
    )


def _measure_lookup(args: argparse.Namespace, trace: tuple[float, ...]) -> list[LookupTimes]:
    """The rival, whose model is gone again on return."""
    if not args.lookup_tokens:
        return []
    print("prompt lookup of transformers", file=sys.stderr)
    device = torch.device(args.device)
    rival = make_random_model(
        args.shape,
        dtype=_DTYPES[args.dtype],  # type: ignore[arg-type]
        device=device,
        attention="sdpa",
    )
    times = [
        measure_lookup(
            rival.model, k=k, context=args.context, num_tokens=args.lookup_tokens, trace=trace
        )
        for k in NUM_LOOKUP_TOKENS
    ]
    del rival
    gc.collect()  # a model refers to itself
    return times


def _measure_attention(
    args: argparse.Namespace, shape: ModelShape, roofline: Roofline
) -> list[AttentionTimes]:
    return [
        measure_attention(
            shape,
            num_heads=shape.num_heads,
            num_rows=num_rows,
            context=context,
            dtype=getattr(torch, _DTYPES[args.dtype]),
            device=torch.device(args.device),
            roofline=roofline,
        )
        for context in args.attention_context
        for num_rows in _ATTENTION_ROWS
        if num_rows <= context
    ]


def _with_ratio(times: StepTimes) -> dict[str, Any]:
    return {**msgspec.to_builtins(times), "floor_ratio": times.floor_ratio}


def format_gpu_report(report: dict[str, Any]) -> str:
    """All figures as tables of plain text."""
    roofline = report["roofline"]
    lines = [
        f"{report['shape']} in {report['dtype']} on {report['device']}, torch"
        f" {report['versions']['torch']};"
        f" context {report['context']}, {report['acceptance']:.1%} of the drafts hold,"
        f" {report['num_graphs']} graphs",
        f"measured: {roofline.bytes_per_s / 1e9:,.0f} GB/s copied,"
        f" {roofline.flops_per_s / 1e12:,.1f} TFLOP/s multiplied",
        "",
        f"{'batch':>6}{'k':>6}{'rows':>7}{'step ms':>10}{'host ms':>10}{'graph':>7}{'floor ms':>10}"
        f"{'x floor':>9}{'rows/s':>12}{'accepted/s':>12}",
    ]
    for step in report["steps"]:
        host = "-" if step["host_ms"] is None else f"{step['host_ms']:.3f}"
        lines.append(
            f"{step['batch']:>6}{step['k']:>6}{step['num_rows']:>7}{step['step_ms']:>10.3f}"
            f"{host:>10}{step['graph_share']:>7.0%}{step['floor_ms']:>10.3f}{step['floor_ratio']:>9.2f}"
            f"{step['rows_per_s']:>12,.0f}{step['accepted_per_s']:>12,.0f}"
        )
    if report["prompt_lookup"]:
        lines += ["", f"{'transformers, prompt lookup':>28}{'k':>6}{'passes':>8}{'tokens/s':>12}"]
    for times in report["prompt_lookup"]:
        lines.append(
            f"{times['num_tokens']:>21} tokens{times['k']:>6}{times['num_passes']:>8}"
            f"{times['tokens_per_s']:>12,.0f}"
        )
    lines += ["", _ATTENTION_HEADER, *map(_format_attention, report["attention"])]
    return "\n".join(lines)


_ATTENTION_HEADER = (
    f"{'context':>8}{'rows':>6}{'ours ms':>10}{'1-row ms':>10}{'SDPA ms':>10}{'flash ms':>10}"
    f"{'of copy':>9}{'of roof':>9}"
)


def _format_attention(times: AttentionTimes) -> str:
    flash = "-" if times.flash_ms is None else f"{times.flash_ms:.3f}"
    return (
        f"{times.context:>8}{times.num_rows:>6}{times.ours_ms:>10.3f}{times.single_rows_ms:>10.3f}"
        f"{times.sdpa_ms:>10.3f}{flash:>10}{times.bandwidth_share:>9.1%}{times.roofline_share:>9.1%}"
    )
