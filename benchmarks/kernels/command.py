"""`python -m benchmarks kernels`: registers, spills and shared memory of each kernel on a GPU.

Kernels are compiled for each compute capability, with the sizes of a 7B model (attention with those
of SmolLM2-135M too) in bfloat16. No GPU is needed. A spilled register costs memory traffic in every
thread. Exits with 1 if a kernel spills.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from typing import Any

import msgspec

from apply_service.apply.errors import UsageError
from apply_service.observe.progress import tracked
from benchmarks.kernels.compiler import CompiledKernel

_NAMED_CONSTANTS = ("HEAD_DIM", "BLOCK_M", "HAS_ALLOWED", "BLOCK")


def add_kernels_command(subparsers: Any) -> None:
    """Register `kernels` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "kernels", help="registers, spills and shared memory of the kernels", description=__doc__
    )
    parser.add_argument(
        "--arch", type=int, nargs="+", default=(80, 89, 90), help="compute capabilities times 10"
    )


def run_kernels(args: argparse.Namespace) -> int:
    """Compile for each capability and print a table; the exit code."""
    print("| kernel | capability | registers | spilled bytes | shared KB |\n|---|---|---|---|---|")
    num_spilling = 0
    for arch in tracked(args.arch, name=lambda arch: f"capability {arch / 10}"):
        for kernel in compile_all(arch):
            num_spilling += kernel.spilled > 0
            names = [
                f"{name}={kernel.constants[name]}"
                for name in _NAMED_CONSTANTS
                if name in kernel.constants
            ]
            print(
                f"| {kernel.name} {' '.join(names)} | {arch / 10} | {kernel.registers}"
                f" | {kernel.spilled} | {kernel.shared / 1024:.1f} |",
                flush=True,
            )
    return 1 if num_spilling else 0


def compile_all(arch: int) -> list[CompiledKernel]:
    """Every kernel for a compute capability, in a process that interprets nothing."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.kernels.compiler", str(arch)],
            env=dict(os.environ, TRITON_CACHE_DIR=folder, TRITON_INTERPRET="0"),
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode:
        raise UsageError(f"nothing was compiled for {arch}: {run.stderr[-2000:]}")
    return msgspec.json.decode(run.stdout, type=list[CompiledKernel])
