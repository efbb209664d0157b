"""`python -m benchmarks speculators`: what drafters bring on a real model, each beside no drafts.

Every task is answered by every contender, one after another, in an order that rotates from task to
task, in one process a contender; so the ratios hold on a noisy machine. Ratios are the seconds of
all tasks without drafts, over those with them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apply_service.evaluate.machine import describe_machine
from apply_service.models.store import resolve_model
from apply_service.observe.progress import tracked
from apply_service.prompts.profile import load_profile
from benchmarks.speculators.contenders import Answer, Contender, EngineContender, make_contenders
from benchmarks.speculators.figures import figures_of, format_figures, format_phases
from benchmarks.speculators.tasks import KINDS, Task, make_tasks


def add_speculators_command(subparsers: Any) -> None:
    """Register `speculators` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "speculators", help="time the real model with each drafter", description=__doc__
    )
    add = parser.add_argument
    add("--cases", type=Path, required=True, metavar="FILE", help="edits, as `bench` reads them")
    add("--model", default="embedded", help="model name or folder")
    add("--profile", default=None, help="prompt profile, by default the model's")
    add(
        "--drafter",
        action="append",
        default=[],
        metavar="KIND[:FOLDER]",
        help="a contender with this drafter beside n-grams; may be given several times",
    )
    add("--kind", action="append", choices=KINDS, help="what to write, by default everything")
    add("--limit", type=int, default=12, help="tasks of each kind")
    add("--max-tokens", type=int, default=200, help="longest answer")
    add("--max-prompt-tokens", type=int, default=1500, help="leave out longer prompts")
    add("--temperature", type=float, default=0.0)
    add("--dtype", choices=("float32", "bfloat16"), default="float32", help="of our engine")
    add("--transformers", action="store_true", help="transformers and its prompt lookup as well")
    add("--llama-python", type=Path, metavar="PATH", help="llama.cpp too, by a Python that has it")


def run_speculators(args: argparse.Namespace) -> int:
    """Measure and print the tables; 0."""
    location = resolve_model(args.model)
    profile = load_profile(args.profile or location.profile, location.path)
    contenders = make_contenders(
        location.path,
        args.drafter,
        dtype=args.dtype,
        tokens=profile.tokenizer,
        has_transformers=args.transformers,
        llama_python=args.llama_python,
    )
    try:
        for kind in args.kind or KINDS:
            tasks = make_tasks(
                kind,
                profile,
                cases=args.cases,
                count=args.limit,
                max_tokens=args.max_tokens,
                max_prompt=args.max_prompt_tokens,
            )
            before = _judged(contenders)
            answers = _race(contenders, tasks, temperature=args.temperature)
            title = f"{kind}, {len(tasks)} tasks, temperature {args.temperature:g}"
            print(format_figures(title, figures_of(answers)), end="\n\n")
            judged = {name: count - before[name] for name, count in _judged(contenders).items()}
            print(format_phases(answers, judged), end="\n\n", flush=True)
        _print_drafters(contenders)
        print(describe_machine(device="cpu", dtype=args.dtype))
    finally:
        for contender in contenders:
            contender.close()
    return 0


def _judged(contenders: Sequence[Contender]) -> dict[str, Counter[tuple[str, str]]]:
    """Draft tokens of each engine so far, by phase of the answer."""
    engines = (one for one in contenders if isinstance(one, EngineContender))
    return {one.name: one.judged_by_phase() for one in engines}


def _race(
    contenders: Sequence[Contender], tasks: Sequence[Task], *, temperature: float
) -> dict[str, list[Answer]]:
    answers: dict[str, list[Answer]] = {contender.name: [] for contender in contenders}
    for contender in contenders:
        contender.write(tasks[0], temperature=temperature, seed=0)  # what is only done once
    for turn in tracked(range(len(tasks)), name=lambda turn: f"task {turn + 1}"):
        task = tasks[turn]
        shift = turn % len(contenders)
        for contender in (*contenders[shift:], *contenders[:shift]):
            answer = contender.write(task, temperature=temperature, seed=turn)
            if answer is not None:
                answers[contender.name].append(answer)
    return answers


def _print_drafters(contenders: Sequence[Contender]) -> None:
    print("| drafter | asks | ms an ask | requests switched off | accepted at place 1, 2, 3, 4 |")
    print("|---|---|---|---|---|")
    for contender in contenders:
        if not isinstance(contender, EngineContender) or not contender.num_drafts:
            continue
        places = contender.accepted_by_position()[:4]
        shares = ", ".join(f"{count / contender.num_drafts:.2f}" for count in places)
        if not contender.drafter_stats():
            print(f"| {contender.name} | - | - | - | {shares} |")
        for name, stats in contender.drafter_stats().items():
            each = 1e3 * stats.seconds / max(1, stats.asks)
            print(f"| {name} | {stats.asks} | {each:.2f} | {stats.switched_off} | {shares} |")
    print()
