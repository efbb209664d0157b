"""`apply-service bench speed`: end-to-end and decode time against the unspeculated run and rivals.

Every case is run by every contender, one after another, in an order that rotates from case to case,
with the same weights, prompt, token limit and number of threads. The rivals, transformers'
`generate` without and with prompt lookup, have a process of their own; while one side computes, the
other is idle. Ratios are sums of seconds over all cases: the rival's divided by ours.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from apply_service.bench.cases import Case, read_cases
from apply_service.bench.rival_process import RivalProcess
from apply_service.bench.speed_run import RivalRequest, SpeedRun
from apply_service.edit.markers import split_segments
from apply_service.engine_requests import default_max_tokens, make_proposer
from apply_service.model_store import resolve_model
from apply_service.prompts.profile import Profile, Prompt, PromptRequest, load_profile
from batching.async_engine import AsyncEngine
from batching.config import EngineConfig
from batching.engine import build_engine
from batching.events import Finished, Tokens
from batching.request import EngineRequest, SamplingParams

_LOOKUPS = {"transformers_greedy": None, "prompt_lookup_10": 10, "prompt_lookup_64": 64}


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case as the contenders get it."""

    case: Case
    prompt: Prompt
    max_tokens: int


def add_speed_command(subparsers: Any) -> None:
    """Register `speed` below `apply-service bench`."""
    parser = subparsers.add_parser(
        "speed", help="time the real model against transformers' generate", description=__doc__
    )
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--model", default="embedded", help="model name or folder")
    parser.add_argument("--profile", default=None, help="prompt profile, by default the model's")
    parser.add_argument("--limit", type=int, default=8, help="number of cases to time")
    parser.add_argument("--max-tokens", type=int, default=512, help="longest answer to write")
    parser.add_argument("--max-prompt-tokens", type=int, default=3000, help="skip longer prompts")
    parser.add_argument(
        "--min-acceptance",
        type=float,
        default=0.0,
        help="time only cases of which the model copies at least this share of the drafts",
    )
    parser.add_argument("--k", type=int, default=64, help="longest draft")
    parser.add_argument("--threads", type=int, default=None, help="threads of torch")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run_speed(args: argparse.Namespace) -> int:
    """Run the bench and print its figures."""
    report = asyncio.run(_measure(args))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(_format_report(report))
    return 0


async def _measure(args: argparse.Namespace) -> dict[str, Any]:
    location = resolve_model(args.model)
    profile = load_profile(args.profile or location.profile, location.path)
    engine = AsyncEngine(
        build_engine(
            EngineConfig(model_path=location.path, num_threads=args.threads, draft_budget="auto")
        )
    )
    engine.start()
    prepared = list(_prepare_cases(args, profile, engine.model_info.max_position))
    num_candidates = len(prepared)
    chosen = await _choose_cases(engine, prepared, args)
    runs: dict[str, list[SpeedRun]] = {}
    with RivalProcess(location.path, num_threads=args.threads) as rival:
        for number, case in enumerate(chosen):
            print(f"case {number + 1} of {len(chosen)}: {case.case.id}", file=sys.stderr)
            for name, run in (await _run_all(engine, rival, case, k=args.k, turn=number)).items():
                runs.setdefault(name, []).append(run)
    await engine.stop()
    return {
        "cases": len(chosen),
        "candidates": num_candidates,
        "min_acceptance": args.min_acceptance,
        "model": location.name,
        "profile": profile.name,
        "constraint": "none",
        "scope": "file",
        "k": args.k,
        "max_tokens": args.max_tokens,
        **_summarise(runs),
    }


def _prepare_cases(
    args: argparse.Namespace, profile: Profile, max_position: int
) -> Iterator[PreparedCase]:
    num_candidates = args.limit if args.min_acceptance <= 0 else 4 * args.limit
    for case in read_cases(args.cases):
        original_lines = case.original.removesuffix("\n").split("\n")
        update_lines = case.update.removesuffix("\n").split("\n")
        prompt = profile.build(
            PromptRequest(
                original_lines=original_lines,
                update_lines=update_lines,
                segments=split_segments(update_lines, original_lines),
                instruction=case.instruction,
            )
        )
        max_tokens = min(default_max_tokens(prompt), args.max_tokens)
        num_tokens = len(prompt.token_ids) + max_tokens
        if len(prompt.token_ids) > args.max_prompt_tokens or num_tokens > max_position:
            continue
        yield PreparedCase(case, prompt, max_tokens)
        num_candidates -= 1
        if num_candidates == 0:
            return


async def _choose_cases(
    engine: AsyncEngine, prepared: list[PreparedCase], args: argparse.Namespace
) -> list[PreparedCase]:
    """The first `limit` cases that the model copies well enough, by a run that is not timed."""
    if args.min_acceptance <= 0:
        return prepared[: args.limit]
    chosen = []
    for case in prepared:
        if await _acceptance(engine, case, args.k) >= args.min_acceptance:
            chosen.append(case)
        if len(chosen) == args.limit:
            break
    return chosen


async def _acceptance(engine: AsyncEngine, case: PreparedCase, k: int) -> float:
    run = await _run_ours(engine, case, k=k)
    assert run.stats is not None, "the engine's own runs have figures"
    return run.stats.accepted / max(1, run.stats.drafted)


async def _run_all(
    engine: AsyncEngine,
    rival: RivalProcess,
    case: PreparedCase,
    *,
    k: int,
    turn: int,
) -> dict[str, SpeedRun]:
    """One run of each contender; which of them begins rotates with `turn`."""
    names = ["ours", "speculation_off", *_LOOKUPS]
    runs = {}
    for name in names[turn % len(names) :] + names[: turn % len(names)]:
        if name in _LOOKUPS:
            runs[name] = rival.run(
                RivalRequest(
                    prompt_token_ids=tuple(case.prompt.token_ids),
                    max_tokens=case.max_tokens,
                    stop_token_ids=tuple(sorted(case.prompt.stop_token_ids)),
                    num_lookup_tokens=_LOOKUPS[name],
                )
            )
        else:
            runs[name] = await _run_ours(engine, case, k=k if name == "ours" else 0)
    return runs


async def _run_ours(engine: AsyncEngine, case: PreparedCase, *, k: int) -> SpeedRun:
    """One request on an idle engine; a salt of its own keeps earlier runs out of its cache."""
    started = time.perf_counter()
    request_id = f"{case.case.id}-{k}-{started}"
    handle = engine.submit(
        EngineRequest(
            request_id=request_id,
            prompt_token_ids=tuple(case.prompt.token_ids),
            sampling=SamplingParams(
                max_tokens=case.max_tokens, stop_token_ids=case.prompt.stop_token_ids
            ),
            proposer=make_proposer(case.prompt) if k else None,
            max_draft_tokens=k,
            cache_salt=request_id.encode(),
        )
    )
    token_ids: list[int] = []
    async for event in handle:
        if isinstance(event, Tokens):
            token_ids += event.token_ids
        elif isinstance(event, Finished):
            seconds = time.perf_counter() - started
            return SpeedRun(token_ids=tuple(token_ids), seconds=seconds, stats=event.stats)
    raise RuntimeError(f"the engine gave up on case {case.case.id}")


def _summarise(runs: dict[str, list[SpeedRun]]) -> dict[str, Any]:
    seconds = {name: sum(run.seconds for run in timed) for name, timed in runs.items()}
    ours = [run.stats for run in runs["ours"] if run.stats is not None]
    unspeculated = [run.stats for run in runs["speculation_off"] if run.stats is not None]
    num_tokens = sum(stats.num_output_tokens for stats in ours)
    decode_s = sum(stats.decode_s for stats in ours)
    decode_off_s = sum(stats.decode_s for stats in unspeculated)
    rivals = [name for name in runs if name != "ours"]
    return {
        "ratios": {name: seconds[name] / seconds["ours"] for name in rivals},
        "decode_ratios": {"speculation_off": decode_off_s / decode_s},
        "speculation_off_ratios": {
            "transformers_greedy": seconds["transformers_greedy"] / seconds["speculation_off"]
        },
        "seconds": seconds,
        "decode_seconds": {"ours": decode_s, "speculation_off": decode_off_s},
        "prompt_tokens": sum(stats.num_prompt_tokens for stats in ours),
        "answer_tokens": num_tokens,
        "tokens_per_target_pass": num_tokens / sum(stats.decode_passes for stats in ours),
        "acceptance": sum(s.accepted for s in ours) / max(1, sum(s.drafted for s in ours)),
        "same_tokens_as_ours": {
            name: sum(
                run.token_ids == our.token_ids
                for run, our in zip(runs[name], runs["ours"], strict=True)
            )
            for name in rivals
        },
    }


def _format_report(report: dict[str, Any]) -> str:
    lines = [
        f"{report['cases']} cases, {report['prompt_tokens']} prompt and {report['answer_tokens']}"
        f" answer tokens; k = {report['k']}, constraint {report['constraint']},"
        f" scope {report['scope']}, model {report['model']}",
        f"accepted {report['acceptance']:.1%} of the drafts,"
        f" {report['tokens_per_target_pass']:.1f} tokens per target pass",
        "",
        f"{'contender':<22}{'seconds':>10}{'ours is':>10}{'same tokens':>14}",
        f"{'ours':<22}{report['seconds']['ours']:>10.2f}",
    ]
    for name, ratio in report["ratios"].items():
        lines.append(
            f"{name:<22}{report['seconds'][name]:>10.2f}{ratio:>9.2f}x"
            f"{report['same_tokens_as_ours'][name]:>8} of {report['cases']}"
        )
    lines += [
        "",
        f"decode alone against speculation off: {report['decode_ratios']['speculation_off']:.2f}x",
        "speculation off against transformers' greedy:"
        f" {report['speculation_off_ratios']['transformers_greedy']:.2f}x",
    ]
    return "\n".join(lines)
