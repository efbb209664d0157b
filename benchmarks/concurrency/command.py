"""`python -m benchmarks concurrency`: whether the draft budget is ever slower than no drafts.

Batches are computed twice on one engine in this process: without drafts, and with the draft budget
as the service has it. A batch has as many requests as run at once, or more, and then another comes
for each that ends. Pair by pair the order alternates, seeds are equal on both sides, and the prefix
cache has nothing that could be reused. The workload `edits` asks for the regions of real edits,
greedily; `new` has the model go on with a file at temperature 1 while drafts are copied from
another file and its update, so that hardly any holds. Throughput is answer tokens a second from the
first submission to the last token of a batch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from apply_service.apply.errors import ApplyError
from apply_service.config import Settings, parse_size
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.machine import describe_machine
from apply_service.evaluate.run_log import RunLog
from apply_service.models.loading import resolve_dtype
from apply_service.models.store import ModelLocation, cache_dir, resolve_model
from apply_service.observe.progress import tracked
from apply_service.prompts.profile import load_profile
from batching.config import Dtype, EngineConfig, ModelInfo, SchedulerConfig
from batching.engine import build_engine
from benchmarks.concurrency.batch_engine import BatchEngine
from benchmarks.concurrency.pairs import ConcurrencyPair, PairRunner, summarise_pairs
from benchmarks.concurrency.tasks import WORKLOADS, Task, Workload, make_tasks

_MAX_CONCURRENCY = 256
_MAX_PROMPT_TOKENS, _MAX_ANSWER_TOKENS = 4096, 4096
# Before the first pair of a workload a smaller one is computed and forgotten, so that shapes are
# compiled and the budget has seen drafts, as in a service that has been running for a while.
_WARM_UP_CONCURRENCY = 4
_MAX_REQUESTS = 10_000
_MAX_DRAFT_TOKENS = SchedulerConfig().max_draft_tokens


class ConcurrencyBenchError(ApplyError):
    """The bench cannot run as asked."""


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """Checked options of a run."""

    cases: Path
    model: str
    profile: str | None
    workloads: tuple[Workload, ...]
    concurrencies: tuple[int, ...]
    num_pairs: int
    min_requests: int
    max_tokens: int
    max_prompt_tokens: int
    num_tasks: int
    kv_memory_bytes: int
    dtype: Dtype
    threads: int | None
    out: Path | None

    @classmethod
    def of(cls, args: argparse.Namespace) -> ConcurrencyOptions:
        """Check the options. Raises ConcurrencyBenchError."""
        concurrencies = parse_counts(args.concurrency, name="--concurrency", limit=_MAX_CONCURRENCY)
        _check("--pairs", args.pairs, 1, 1000)
        _check("--requests", args.requests, 1, _MAX_REQUESTS)
        _check("--tasks", args.tasks, 1, 10_000)
        _check("--max-tokens", args.max_tokens, 2, _MAX_ANSWER_TOKENS)
        _check("--max-prompt-tokens", args.max_prompt_tokens, 16, _MAX_PROMPT_TOKENS)
        return cls(
            cases=args.cases,
            model=args.model,
            profile=args.profile,
            workloads=WORKLOADS if args.workload == "both" else (args.workload,),
            concurrencies=concurrencies,
            num_pairs=args.pairs,
            min_requests=args.requests,
            max_tokens=args.max_tokens,
            max_prompt_tokens=args.max_prompt_tokens,
            num_tasks=args.tasks,
            kv_memory_bytes=_parse_kv_memory(args.kv_memory),
            dtype=resolve_dtype(Settings(dtype=args.dtype), "cpu"),
            threads=args.threads,
            out=args.out,
        )


def parse_counts(text: str, *, name: str, limit: int) -> tuple[int, ...]:
    """Whole numbers from 1 to `limit`, with commas. Raises ConcurrencyBenchError."""
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConcurrencyBenchError(
            f"{name} is {text!r}; give whole numbers with commas, such as 1,4,16,64"
        ) from error
    for count in counts:
        _check(name, count, 1, limit)
    return counts


def add_concurrency_command(subparsers: Any) -> None:
    """Register `concurrency` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "concurrency",
        help="whether the draft budget is ever slower than no drafts",
        description=__doc__,
    )
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--model", default="embedded", help="model name or folder")
    parser.add_argument("--profile", default=None, help="prompt profile, by default the model's")
    parser.add_argument("--workload", choices=(*WORKLOADS, "both"), default="both")
    parser.add_argument("--concurrency", default="1,4,16,64", metavar="N,N", help="batch sizes")
    parser.add_argument("--pairs", type=int, default=15, help="pairs for each batch size")
    parser.add_argument(
        "--requests", type=int, default=16, help="requests of a batch, unless more run at once"
    )
    parser.add_argument("--tasks", type=int, default=16, help="different prompts, used in turn")
    parser.add_argument("--max-tokens", type=int, default=48, help="where answers are cut off")
    parser.add_argument(
        "--max-prompt-tokens", type=int, default=250, help="cases with longer prompts are left out"
    )
    parser.add_argument("--kv-memory", default="1GiB", help="must hold the largest batch")
    parser.add_argument(
        "--dtype",
        choices=("auto", *get_args(Dtype)),
        default="auto",
        help="by default what the service takes",
    )
    parser.add_argument("--threads", type=int, default=None, help="threads of torch")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="finished pairs, one a line; a later run goes on"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run_concurrency(args: argparse.Namespace) -> int:
    """Run the bench and print its figures."""
    report = _measure(ConcurrencyOptions.of(args))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(_format_report(report))
    return 0


def _measure(options: ConcurrencyOptions) -> dict[str, Any]:
    location = resolve_model(options.model)
    tasks = _make_tasks(options, location)
    settings = {
        "model": location.name,
        "revision": location.revision,
        "concurrency": list(options.concurrencies),
        "requests": options.min_requests,
        "max_tokens": options.max_tokens,
        "max_prompt_tokens": options.max_prompt_tokens,
        "tasks": {workload: len(of_workload) for workload, of_workload in tasks.items()},
    }
    started = build_engine(_engine_config(options, location))
    _check_memory(options, started.model_info)
    with BatchEngine(started) as engine:
        # After the model is loaded torch has the threads that were asked for.
        machine = describe_machine(device="cpu", dtype=options.dtype)
        log = RunLog(
            options.out,
            identity={"bench": "concurrency", **settings, "machine": machine},
            row_type=ConcurrencyPair,
        )
        runner = PairRunner(
            engine,
            max_tokens=options.max_tokens,
            max_draft_tokens=_MAX_DRAFT_TOKENS,
            min_requests=options.min_requests,
        )
        for workload in options.workloads:
            _run_workload(workload, tasks[workload], options, runner, log)
    return {**settings, "machine": machine, "results": summarise_pairs(log.rows)}


def _make_tasks(
    options: ConcurrencyOptions, location: ModelLocation
) -> Mapping[Workload, Sequence[Task]]:
    profile = load_profile(options.profile or location.profile, location.path)
    cases: list[Case] = list(read_cases(options.cases))
    tasks = {
        workload: make_tasks(
            workload,
            cases,
            profile,
            max_prompt_tokens=options.max_prompt_tokens,
            limit=options.num_tasks,
        )
        for workload in options.workloads
    }
    for workload, of_workload in tasks.items():
        if not of_workload:
            raise ConcurrencyBenchError(
                f"none of {len(cases)} cases gives a prompt of at most {options.max_prompt_tokens}"
                f" tokens for the workload {workload}; raise --max-prompt-tokens or give other"
                " cases"
            )
        print(f"{workload}: {len(of_workload)} prompts", file=sys.stderr)
    return tasks


def _run_workload(
    workload: Workload,
    tasks: Sequence[Task],
    options: ConcurrencyOptions,
    runner: PairRunner,
    log: RunLog[ConcurrencyPair],
) -> None:
    """Run the pairs that the log lacks; the batch sizes take turns."""
    finished = {(pair.workload, pair.concurrency, pair.number) for pair in log.rows}
    is_warm = False
    wanted = [
        (concurrency, number)
        for number in range(options.num_pairs)
        for concurrency in options.concurrencies
        if (workload, concurrency, number) not in finished
    ]
    for concurrency, number in tracked(wanted, name=lambda pair: f"{workload}, {pair[0]} at once"):
        if not is_warm:
            runner.run(workload, tasks, concurrency=_WARM_UP_CONCURRENCY, number=-1)
            is_warm = True
        pair = runner.run(workload, tasks, concurrency=concurrency, number=number)
        log.add(pair)
        print(
            f"{workload}, {concurrency} at once, pair {number + 1} of {options.num_pairs}:"
            f" off {pair.off.seconds:.2f} s, budgeted {pair.budgeted.seconds:.2f} s,"
            f" ratio {pair.ratio:.3f}",
            file=sys.stderr,
            flush=True,
        )


def _engine_config(options: ConcurrencyOptions, location: ModelLocation) -> EngineConfig:
    """The service's defaults, but that all requests of a batch run at once and fit the cache."""
    most = max(*options.concurrencies, _WARM_UP_CONCURRENCY)
    defaults = SchedulerConfig()
    return EngineConfig(
        model_path=location.path,
        dtype=options.dtype,
        num_threads=options.threads,
        draft_budget="auto",
        step_cost_dir=cache_dir() / "step-costs",
        kv_memory_bytes=options.kv_memory_bytes,
        scheduler=SchedulerConfig(max_running=max(defaults.max_running, most)),
    )


def _check_memory(options: ConcurrencyOptions, info: ModelInfo) -> None:
    """A batch that has to give up blocks and compute them again would measure something else."""
    longest = options.max_prompt_tokens + options.max_tokens + SchedulerConfig().block_size
    num_tokens = max(options.concurrencies) * longest
    if num_tokens > info.num_kv_tokens:
        raise ConcurrencyBenchError(
            f"{max(options.concurrencies)} requests at once may need {num_tokens} tokens of KV"
            f" cache, --kv-memory {options.kv_memory_bytes} holds {info.num_kv_tokens}; give it"
            f" {num_tokens * info.kv_bytes_per_token} bytes, or send fewer at once"
        )


def _parse_kv_memory(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConcurrencyBenchError(f"--kv-memory: {error}") from error


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ConcurrencyBenchError(
            f"{name} has the value {value}; give a number from {least} to {most}"
        )


def _format_report(report: Mapping[str, Any]) -> str:
    machine = report["machine"]
    lines = [
        f"model {report['model']}, {machine['dtype']} on {machine['processor']},"
        f" {machine['threads']} threads; answers of at most {report['max_tokens']} tokens",
        "",
        f"{'workload':<10}{'at once':>8}{'pairs':>7}{'off tok/s':>11}{'budgeted':>10}"
        f"{'ratio':>8}{'95 % above':>12}{'accepted':>10}{'same answers':>15}",
    ]
    for result in report["results"]:
        speed, acceptance = result["tokens_per_s"], result["acceptance"]
        accepted = "-" if acceptance is None else f"{acceptance:.1%}"
        lines.append(
            f"{result['workload']:<10}{result['concurrency']:>8}{result['pairs']:>7}"
            f"{speed['off']:>11.1f}{speed['budgeted']:>10.1f}{result['ratio']:>8.3f}"
            f"{result['ratio_lower_bound']:>12.3f}{accepted:>10}"
            f"{result['same_answers']:>9} of {result['answers']}"
        )
    return "\n".join(lines)
