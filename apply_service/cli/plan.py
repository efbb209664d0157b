"""`apply-service plan`: how many replicas a load needs, their memory, and what an edit costs.

Steps cost what was measured: on this machine, once a server has run here, or on an H100 (`--gpu`).
docs/capacity.md has the formula and how far it was off.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from apply_service.apply.errors import UsageError
from apply_service.config import format_size, parse_size
from apply_service.fleet.capacity import (
    MODEL_SIZES,
    Load,
    Machine,
    Plan,
    TooLargeError,
    dollars_per_million,
    h100,
    plan_of,
)
from apply_service.models.info import model_info
from apply_service.models.store import cache_dir, resolve_model
from batching.config import CPU_KV_MEMORY
from batching.cost_measurement import read_newest_costs

_MIB = 1 << 20


def add_plan_command(subparsers: Any) -> None:
    """Register `plan`."""
    parser = subparsers.add_parser(
        "plan", help="how many replicas a load needs, and what they cost", description=__doc__
    )
    number = {"type": float, "metavar": "N"}
    parser.add_argument("--edits-per-s", **number, required=True, help="edits a second")
    parser.add_argument(
        "--tokens",
        required=True,
        metavar="PROMPT:ANSWER",
        help="tokens of an edit for the model; 0:0 where it is not asked",
    )
    parser.add_argument(
        "--cached", **number, default=0.0, help="share of prompt tokens in the prefix cache (0)"
    )
    parser.add_argument(
        "--tokens-per-pass",
        **number,
        default=8.0,
        help="answer tokens of a pass: speculation.tokens_per_target_pass of answers (8)",
    )
    parser.add_argument("--rows-per-pass", **number, default=33.0, help="drafts and one (33)")
    parser.add_argument(
        "--text-ms", **number, default=50.0, help="processor time beside the engine, ms (50)"
    )
    parser.add_argument("--files", type=int, default=0, metavar="N", help="files edited again (0)")
    parser.add_argument("--gpu", choices=("h100",), help="a measured GPU; else this machine")
    parser.add_argument("--size", choices=MODEL_SIZES, default="7b", help="model on the GPU (7b)")
    parser.add_argument("--cores", type=int, metavar="N", help="of a replica (this machine's, 16)")
    parser.add_argument("--model", default="embedded", help="model on this machine (embedded)")
    parser.add_argument("--kv-memory", metavar="SIZE", help="of a replica, such as 2GiB")
    parser.add_argument("--utilisation", **number, default=0.7, help="busy at most (0.7)")
    parser.add_argument("--dollars-per-hour", **number, help="price of a replica")


def run_plan(args: argparse.Namespace) -> int:
    """Print the plan; the exit code. Raises UsageError, or ModelStoreError."""
    load, machine = _load_of(args), _machine_of(args)
    try:
        plan = plan_of(load, machine, utilisation=args.utilisation)
    except TooLargeError as error:
        raise UsageError(str(error)) from error
    print(_format(plan, load, machine, args.dollars_per_hour), end="")
    return 0


def _load_of(args: argparse.Namespace) -> Load:
    prompt, _, answer = args.tokens.partition(":")
    try:
        prompt_tokens, answer_tokens = float(prompt), float(answer)
    except ValueError as error:
        raise UsageError(f"--tokens is {args.tokens!r}; give PROMPT:ANSWER: 600:150") from error
    for name, value, least, most in (
        ("--edits-per-s", args.edits_per_s, 1e-6, 1e9),
        ("--tokens", min(prompt_tokens, answer_tokens), 0.0, 1e9),
        ("--cached", args.cached, 0.0, 1.0),
        ("--tokens-per-pass", args.tokens_per_pass, 1.0, 1e6),
        ("--rows-per-pass", args.rows_per_pass, 1.0, 1e6),
        ("--text-ms", args.text_ms, 0.0, 1e9),
        ("--files", args.files, 0, 1e12),
        ("--utilisation", args.utilisation, 0.01, 1.0),
    ):
        if not least <= value <= most:
            raise UsageError(f"{name} is {value:g}; give {least:g} to {most:g}")
    return Load(
        edits_per_s=args.edits_per_s,
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
        cached_share=args.cached,
        tokens_per_pass=args.tokens_per_pass,
        rows_per_pass=args.rows_per_pass,
        text_ms=args.text_ms,
        num_files=args.files,
    )


def _machine_of(args: argparse.Namespace) -> Machine:
    kv_memory = None
    if args.kv_memory is not None:
        try:
            kv_memory = parse_size(args.kv_memory)
        except ValueError as error:
            raise UsageError(f"--kv-memory is {args.kv_memory!r}: {error}") from error
    if args.gpu is not None:
        return h100(args.size, num_cores=args.cores or 16)
    return this_machine(
        args.model, num_cores=args.cores or os.cpu_count() or 1, kv_memory_bytes=kv_memory
    )


def this_machine(
    model: str, *, num_cores: int, kv_memory_bytes: int | None = None, folder: Path | None = None
) -> Machine:
    """This machine with a prepared model. Raises UsageError if its steps were never measured."""
    found = read_newest_costs(folder or cache_dir() / "step-costs")
    if found is None:
        raise UsageError(
            "no steps were measured on this machine; start `apply-service serve` once, or give"
            " --gpu h100"
        )
    described = model_info(resolve_model(model, None))
    return Machine(
        name=f"{found.identity.get('processor')}, {found.identity.get('dtype')}",
        costs=found.costs,
        kv_bytes_per_token=described.kv_bytes_per_token,
        kv_memory_bytes=kv_memory_bytes or CPU_KV_MEMORY,
        num_cores=num_cores,
        is_cpu=found.identity.get("device", "cpu") == "cpu",
    )


def _format(plan: Plan, load: Load, machine: Machine, dollars_per_hour: float | None) -> str:
    rows = {
        "replica": f"{machine.name}, {machine.num_cores} cores",
        "replicas": str(plan.num_replicas),
        "edits/s of a replica, at most": f"{plan.edits_per_s:.2f}, {plan.num_at_once} at once",
        "seconds of an edit then": f"{plan.latency_s:.2f}",
        "KV memory, all": format_size(round(plan.kv_bytes / _MIB) * _MIB),
        "Redis memory": format_size(round(plan.redis_bytes / _MIB) * _MIB),
        "Redis traffic": f"{plan.redis_bytes_per_s * 8 / 1e9:.2f} Gbit/s",
    }
    if dollars_per_hour is not None:
        dollars = dollars_per_million(plan, load, dollars_per_hour)
        rows["dollars per million edits"] = f"{dollars:.2f}"
    return "".join(f"{name:30} {value}\n" for name, value in rows.items())
