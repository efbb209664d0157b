"""`python -m benchmarks speed`: end-to-end time of whole answers, ours against rivals.

Every case is run by every contender, one after another, in an order that rotates from case to case,
with the same weights, prompt, token limit and number of threads. Each contender has a process of
its own, is started once and is idle while another computes; it runs one case before anything is
timed. Ours is timed from the texts of the edit on, rivals from the prompt's tokens on. Ratios are
sums of seconds over all cases: the rival's divided by ours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import torch

from apply_service.apply.errors import ApplyError
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.machine import describe_machine
from apply_service.models.store import resolve_model
from apply_service.prompts.profile import load_profile
from benchmarks.speed.case import SpeedCase, ordered_cases, try_prepare
from benchmarks.speed.contenders import (
    LLAMA_CONTEXT_TOKENS,
    SpeedOptions,
    own_contenders,
    peer_contenders,
)
from benchmarks.speed.log import SpeedLog, SpeedSettings
from benchmarks.speed.race import Race
from benchmarks.speed.report import format_speed_report, summarise_speed


class SpeedBenchError(ApplyError):
    """What was asked for cannot be measured."""


def add_speed_command(subparsers: Any) -> None:
    """Register `speed` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "speed", help="time the real model against its peers", description=__doc__
    )
    add = parser.add_argument
    add("--cases", type=Path, required=True, metavar="FILE")
    add("--model", default="embedded", help="model name or folder")
    add("--profile", default=None, help="prompt profile, by default the model's")
    add("--limit", type=_count, default=8, help="number of cases to time")
    add("--seed", type=int, default=None, help="take cases at random instead of the first ones")
    add("--max-tokens", type=_count, default=None, help="longest answer, by default whole ones")
    add("--max-prompt-tokens", type=_count, default=3000, help="skip longer prompts")
    add(
        "--min-acceptance",
        type=float,
        default=0.0,
        help="time only cases of which the model copies at least this share of the drafts",
    )
    add("--k", type=_count, default=64, help="longest draft")
    add("--draft-budget", choices=("auto", "fixed"), default="auto", help="as in the service")
    add("--rounds", type=_count, default=1, help="runs of each case, of which medians are taken")
    add("--threads", type=_count, default=None, help="threads of every contender")
    add("--peers", action="store_true", help="llama.cpp too, and the service's own default")
    add("--llama-python", type=Path, default=None, metavar="PATH", help="a Python with llama.cpp")
    add("--out", type=Path, default=None, metavar="FILE", help="keep runs here, and go on from it")
    add("--json", action="store_true", help="print the figures as JSON")


def run_speed(args: argparse.Namespace) -> int:
    """Run the bench and print its figures."""
    report = _measure(args)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(format_speed_report(report))
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    if args.llama_python is not None and not args.peers:
        raise SpeedBenchError("--llama-python is for llama.cpp; give --peers too, or leave it out")
    options = _options_of(args)
    all_cases = ordered_cases(args.cases, seed=args.seed)
    contenders = own_contenders(options)
    if args.peers:
        python = args.llama_python or Path(sys.executable)
        contenders += peer_contenders(options, llama_python=python, report=_say)
    machine = describe_machine(device="cpu", dtype="float32")
    settings = SpeedSettings(
        model=options.location.name,
        revision=options.location.revision,
        profile=options.profile,
        k=args.k,
        draft_budget=args.draft_budget,
        max_tokens=args.max_tokens,
        threads=options.num_threads,
        processor=machine["processor"],
    )
    log = SpeedLog(args.out, settings)
    with ExitStack() as stack:
        race = Race(contenders, log, stack, report=_say)
        cases = _choose_cases(all_cases, args, options, race)
        race.run(cases, num_rounds=args.rounds)
    records = {
        contender.name: [race.rounds_of(case, contender, args.rounds) for case in cases]
        for contender in contenders
    }
    return {
        "machine": {**machine, "threads": options.num_threads},
        "settings": msgspec.to_builtins(settings),
        "cases": len(cases),
        "case_ids": [case.case.id for case in cases],
        "rounds": args.rounds,
        "seed": args.seed,
        "max_prompt_tokens": args.max_prompt_tokens,
        "min_acceptance": args.min_acceptance,
        "constraint": "none",
        "scope": "file",
        **summarise_speed(records, k=args.k),
    }


def _options_of(args: argparse.Namespace) -> SpeedOptions:
    location = resolve_model(args.model)
    return SpeedOptions(
        location=location,
        model=args.model,
        profile=args.profile or location.profile,
        num_threads=args.threads or torch.get_num_threads(),
        max_draft_tokens=args.k,
        draft_budget=args.draft_budget,
        max_tokens=args.max_tokens,
    )


def _choose_cases(
    cases: Iterable[Case], args: argparse.Namespace, options: SpeedOptions, race: Race
) -> list[SpeedCase]:
    """The first `limit` cases that fit and that the model copies well enough.

    Raises SpeedBenchError if there is none.
    """
    chosen: list[SpeedCase] = []
    for case in _fitting_cases(cases, args, options, max_context=race.max_position):
        if args.min_acceptance <= 0 or race.acceptance(case) >= args.min_acceptance:
            chosen.append(case)
        if len(chosen) == args.limit:
            break
    if not chosen:
        raise SpeedBenchError(
            f"no case of {args.cases} asks a model with a prompt of at most"
            f" {args.max_prompt_tokens} tokens, of which it copies at least"
            f" {args.min_acceptance}; raise --max-prompt-tokens or lower --min-acceptance"
        )
    return chosen


def _fitting_cases(
    cases: Iterable[Case], args: argparse.Namespace, options: SpeedOptions, *, max_context: int
) -> Iterator[SpeedCase]:
    """Those that ask a model whose context has room for them, as that of every contender has."""
    profile = load_profile(options.profile, options.location.path)
    if args.peers:
        max_context = min(max_context, LLAMA_CONTEXT_TOKENS)
    for case in cases:
        prepared = try_prepare(case, profile, max_tokens=args.max_tokens)
        if prepared is None:
            continue
        num_prompt = len(prepared.prompt.token_ids)
        has_room = num_prompt + prepared.max_tokens <= max_context
        if num_prompt <= args.max_prompt_tokens and has_room:
            yield prepared


def _say(message: str) -> None:
    print(message, file=sys.stderr)
