"""`python -m benchmarks drafters`: tokens per target pass of our drafter and of others, no model.

An oracle answers each case with its expected file in the profile's tokens, end tokens included.
Tokens per target pass are answer tokens over decode passes: a pass yields the accepted draft tokens
and one more; the pass that reads the prompt is not counted. Mean and p10 are over cases, each case
weighing the same; pooled is all tokens over all passes, so that long answers weigh more.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from apply_service.apply.engine_requests import drafts_of
from apply_service.evaluate.cases.case_file import Case, CaseFileError, read_cases
from apply_service.models.store import resolve_model
from apply_service.observe.progress import tracked
from apply_service.prompts.errors import TextNotEncodableError
from apply_service.prompts.profile import Profile, load_profile
from benchmarks.drafters.ablation import move_block, rename_identifier
from benchmarks.drafters.baseline_drafters import AutomatonDrafter, NgramDrafter
from benchmarks.drafters.constraint_figures import format_constraint, measure_constraint
from benchmarks.drafters.replay import ReplayFigures, ceiling, replay, summarise_replay
from benchmarks.drafters.replay_case import ReplayCase, to_tokens
from lookup.edit_proposer import EditProposer
from lookup.proposer import Proposer

_PASSES_HEAD = f"{'mean':>10}{'p10':>8}{'pooled':>10}"

DrafterFactory = Callable[[ReplayCase], Proposer]


def add_drafters_command(subparsers: Any) -> None:
    """Register `drafters` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "drafters",
        help="measure drafters on expected answers, without a model",
        description=__doc__,
    )
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--k", type=int, default=64, help="longest draft, default 64")
    parser.add_argument("--model", default="embedded", help="model whose tokens are used")
    parser.add_argument(
        "--tokenizer-dir", type=Path, default=None, help="folder with tokenizer.json instead"
    )
    parser.add_argument("--profile", default=None, help="prompt profile, by default the model's")
    parser.add_argument("--limit", type=int, default=None, help="read at most this many cases")
    parser.add_argument(
        "--min-tokens",
        type=int,
        default=0,
        help="leave out cases with a shorter answer (one of 65 tokens fits one pass, so short"
        " answers say little); the number left out is reported",
    )
    parser.add_argument(
        "--trace-out",
        type=Path,
        metavar="FILE",
        help="write how much of each of our whole drafts held, for `benchmarks gpu --trace`",
    )
    parser.add_argument("--ngram-min", type=int, default=1, help="shortest n of the n-gram drafter")
    parser.add_argument("--ngram-max", type=int, default=8, help="longest n of the n-gram drafter")
    parser.add_argument(
        "--without-merge",
        action="store_true",
        help="let our drafter do without the deterministic merge as a reference",
    )
    parser.add_argument(
        "--constraint",
        choices=("merge", "none"),
        help="count the target passes of the engine too: by speculation alone and, with merge,"
        " where the model only chooses among the valid merges",
    )
    parser.add_argument(
        "--ablation",
        action="store_true",
        help="measure again with code moved and a name changed that the update does not announce",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run_drafters(args: argparse.Namespace) -> int:
    """Run the bench and print its figures; 1 if the cases cannot be used."""
    try:
        report = _measure(args)
    except CaseFileError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(_format_report(report))
    return 0


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    profile = _load_profile(args)
    cases = list(_take(read_cases(args.cases), args.limit))
    replayed, left_out = _prepare(cases, profile, args)
    if not replayed:
        raise CaseFileError(
            f"{args.cases}: none of {len(cases)} cases can be replayed (left out:"
            f" {left_out}); lower --min-tokens or give other cases"
        )
    factories = _drafters(args)
    figures = _replay_all(replayed, factories, args.k)
    if args.trace_out is not None:
        _write_trace(args.trace_out, figures["ours"])
    report: dict[str, Any] = {
        "cases": len(replayed),
        "left_out": left_out,
        "min_tokens": args.min_tokens,
        "k": args.k,
        "tokenisation": profile.name,
        "merge_reference": not args.without_merge,
        "answer_tokens": sum(len(case.answer) for case in replayed),
        "ceiling": ceiling([len(case.answer) for case in replayed], max_draft_tokens=args.k),
        "drafters": {name: summarise_replay(measured) for name, measured in figures.items()},
        "by_style": _by_style(replayed, figures["ours"]),
    }
    if args.constraint is not None:
        report["constraint"] = measure_constraint(
            replayed, max_draft_tokens=args.k, constraint=args.constraint
        )
    if args.ablation:
        report["ablation"] = _measure_ablation(cases, profile, args)
    return report


def _write_trace(path: Path, figures: Sequence[ReplayFigures]) -> None:
    """What `benchmarks gpu --trace` reads: one share a line."""
    shares = [f"{share:.4g}\n" for figure in figures for share in figure.shares]
    path.write_text("".join(shares), encoding="utf-8")


def _load_profile(args: argparse.Namespace) -> Profile:
    if args.tokenizer_dir is not None:
        return load_profile(args.profile or "embedded", args.tokenizer_dir)
    location = resolve_model(args.model)
    return load_profile(args.profile or location.profile, location.path)


def _take(cases: Iterator[Case], limit: int | None) -> Iterator[Case]:
    for number, case in enumerate(cases):
        if limit is not None and number >= limit:
            return
        yield case


def _prepare(
    cases: Iterable[Case], profile: Profile, args: argparse.Namespace
) -> tuple[list[ReplayCase], dict[str, int]]:
    """The cases in tokens, and how many were left out for which reason."""
    replayed: list[ReplayCase] = []
    left_out = {"shorter_than_min_tokens": 0, "not_encodable": 0}
    for case in cases:
        try:
            prepared = to_tokens(case, profile, has_merge=not args.without_merge)
        except TextNotEncodableError:
            left_out["not_encodable"] += 1
            continue
        if len(prepared.answer) < args.min_tokens:
            left_out["shorter_than_min_tokens"] += 1
        else:
            replayed.append(prepared)
    return replayed, left_out


def _drafters(args: argparse.Namespace) -> dict[str, DrafterFactory]:
    """The drafters of the contract, ours first."""
    return {
        "ours": lambda case: drafts_of(
            case.prompt, predicted_token_ids=case.predicted, rival_token_ids=case.rival
        ).make(),
        "ngram": lambda case: NgramDrafter(
            case.prompt.token_ids, min_n=args.ngram_min, max_n=args.ngram_max
        ),
        "automaton": lambda case: AutomatonDrafter(case.prompt.token_ids),
        "original_cursor": _make_original_cursor,
    }


def _make_long_output_match(case: ReplayCase) -> EditProposer:
    """Ours with the output copied only after eight repeated tokens."""
    prompt = case.prompt
    return EditProposer(
        original=prompt.original_token_ids,
        snippet_segments=prompt.snippet_segments,
        merge=case.predicted,
        rival=case.rival,
        end_token_ids=prompt.end_token_ids,
        min_output_match=8,
    )


def _make_cursors_only(case: ReplayCase) -> EditProposer:
    """Ours with its cursors alone: nothing is found that is not near one of them."""
    prompt = case.prompt
    return EditProposer(
        original=prompt.original_token_ids,
        snippet_segments=prompt.snippet_segments,
        merge=case.predicted,
        rival=case.rival,
        end_token_ids=prompt.end_token_ids,
        min_output_match=sys.maxsize,
        max_far_places=0,
    )


def _make_original_cursor(case: ReplayCase) -> EditProposer:
    """A cursor over the original alone, realigned by its longest match."""
    prompt = case.prompt
    return EditProposer(
        original=prompt.original_token_ids,
        snippet_segments=(),
        end_token_ids=prompt.end_token_ids,
        min_output_match=sys.maxsize,
    )


def _replay_all(
    cases: Sequence[ReplayCase], factories: Mapping[str, DrafterFactory], k: int
) -> dict[str, list[ReplayFigures]]:
    return {
        name: [replay(make(case), case.answer, max_draft_tokens=k) for case in cases]
        for name, make in tracked(list(factories.items()), name=lambda pair: pair[0])
    }


def _by_style(
    cases: Sequence[ReplayCase], figures: Sequence[ReplayFigures]
) -> dict[str, dict[str, Any]]:
    """Ours for each style of update."""
    counts = Counter(case.style for case in cases)
    return {
        style: {
            "cases": counts[style],
            **summarise_replay(
                [figure for case, figure in zip(cases, figures, strict=True) if case.style == style]
            ),
        }
        for style in sorted(counts)
    }


def _measure_ablation(
    cases: Sequence[Case], profile: Profile, args: argparse.Namespace
) -> dict[str, Any]:
    """Figures of all drafters, and of ours with less and with more search, on changed cases."""
    factories = _drafters(args) | {
        "ours_cursors_only": _make_cursors_only,
        "ours_output_match_8": _make_long_output_match,
    }
    report: dict[str, Any] = {}
    for name, change in (("moved", move_block), ("renamed", rename_identifier)):
        changed = [case for case in map(change, cases) if case is not None]
        replayed, left_out = _prepare(changed, profile, args)
        if replayed:
            figures = _replay_all(replayed, factories, args.k)
            report[name] = {
                "cases": len(replayed),
                "left_out": left_out,
                "drafters": {
                    name: summarise_replay(measured) for name, measured in figures.items()
                },
            }
    return report


def _format_report(report: Mapping[str, Any]) -> str:
    left_out = ", ".join(f"{count} {reason}" for reason, count in report["left_out"].items())
    lines = [
        f"{report['cases']} cases, {report['answer_tokens']} answer tokens; k = {report['k']},"
        f" tokens of profile {report['tokenisation']}, at least {report['min_tokens']} tokens"
        f" (left out: {left_out})",
        *_format_drafters(report["drafters"]),
        f"{'(never wrong)':<20}{_format_passes(report['ceiling'])}",
        "mean and p10 of tokens/pass are over cases; pooled is all tokens over all passes",
        "",
        f"{'ours, by style of the update':<32}{'cases':>8}{_PASSES_HEAD}",
    ]
    for style, figures in report["by_style"].items():
        passes = figures["tokens_per_target_pass"]
        lines.append(f"{style:<32}{figures['cases']:>8}{_format_passes(passes)}")
    if "constraint" in report:
        lines += ["", *format_constraint(report["constraint"])]
    for name, part in report.get("ablation", {}).items():
        lines += ["", f"{name}, {part['cases']} cases", *_format_drafters(part["drafters"])]
    return "\n".join(lines)


def _format_drafters(drafters: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield (
        f"{'tokens/pass':<20}{_PASSES_HEAD}{'accepted':>10}"
        f"{'drafted/pass':>14}{'us/pass':>9}{'build us/token':>16}"
    )
    for name, figures in drafters.items():
        yield (
            f"{name:<20}{_format_passes(figures['tokens_per_target_pass'])}"
            f"{figures['acceptance']:>10.1%}{figures['drafted_per_pass']:>14.1f}"
            f"{figures['propose_us']:>9.1f}{figures['build_us_per_token']:>16.2f}"
        )


def _format_passes(passes: Mapping[str, float]) -> str:
    return f"{passes['mean']:>10.1f}{passes['p10']:>8.1f}{passes['pooled']:>10.1f}"
