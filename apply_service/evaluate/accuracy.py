"""`apply-service bench accuracy`: how often the merged file is right, and how often it says so.

A case is exact when the answer is the expected file byte for byte. A silent error is an answer with
status `applied` that is not exact; of a silent loss a line of the original or of the snippet is
missing. Shares are of all cases that have an answer, with their 95 % Wilson interval.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from apply_service.apply.errors import ApplyError
from apply_service.cli.progress import Progress
from apply_service.cli.suggesting_parser import positive_int
from apply_service.evaluate.accuracy_report import format_report, summarise
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.case_result import CaseResult
from apply_service.evaluate.cases.git_cases import describe_left_out, read_git_cases
from apply_service.evaluate.cases.misses import write_misses
from apply_service.evaluate.cases.planned_case import plan_case
from apply_service.evaluate.contenders.contender import Contender
from apply_service.evaluate.contenders.endpoint import Endpoint
from apply_service.evaluate.contenders.merge import MergeContender
from apply_service.evaluate.contenders.remote import (
    API_KEY_VARIABLE,
    RemoteContender,
    detect_api,
    split_url,
)
from apply_service.evaluate.contenders.wire_formats import FORMATS

DEFAULT_GIT_LIMIT = 200
DEFAULT_FAILURES = Path("accuracy-failures")
DEFAULT_TIMEOUT_S = 120.0


class NoCasesError(ApplyError):
    """There is nothing to measure."""


@dataclass(frozen=True, slots=True)
class CaseSource:
    """The cases of a run, where they are from, and what was left out on the way."""

    name: str
    cases: Sequence[Case]
    left_out: Mapping[str, int] = field(default_factory=dict)


def add_accuracy_command(subparsers: Any) -> None:
    """Register `accuracy` below `apply-service bench`."""
    parser = subparsers.add_parser(
        "accuracy",
        help="how often the merged file is right, and how often it says so",
        description=__doc__,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--cases", type=Path, metavar="FILE", help="case file, one JSON a line")
    source.add_argument(
        "--git",
        type=Path,
        metavar="REPO",
        help="your own repository: its last commits that changed one file, as lazy updates",
    )
    parser.add_argument("--revision", default="HEAD", help="with --git: where to begin")
    parser.add_argument(
        "--limit",
        type=positive_int,
        help=f"at most this many cases, with --git {DEFAULT_GIT_LIMIT} by default",
    )
    _add_contender_flags(parser)
    parser.add_argument(
        "--failures",
        type=Path,
        default=DEFAULT_FAILURES,
        metavar="DIR",
        help=f"folder for the misses as diffs, default {DEFAULT_FAILURES}",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def _add_contender_flags(parser: argparse.ArgumentParser) -> None:
    contender = parser.add_mutually_exclusive_group()
    contender.add_argument(
        "--merge-only", action="store_true", help="the deterministic merge alone, without a model"
    )
    contender.add_argument(
        "--no-fallback",
        action="store_true",
        help="the model's output on each case, without the merge",
    )
    parser.add_argument(
        "--constraint",
        choices=("merge", "none"),
        help="whether the model, asked about each case, is bound to the valid merges; unset, what"
        " suits it",
    )
    contender.add_argument(
        "--against",
        metavar="URL",
        help=f"an endpoint that gets the files and updates; its key comes from {API_KEY_VARIABLE}",
    )
    parser.add_argument(
        "--api", choices=tuple(FORMATS), help="with --against: by default told by the address"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"with --against: the longest wait for one answer, default {DEFAULT_TIMEOUT_S:.0f}",
    )
    parser.add_argument("--model", help="model here, or the name that the endpoint is asked for")
    parser.add_argument("--threads", help="threads of torch")


def run_accuracy(args: argparse.Namespace) -> int:
    """Run the bench and print its figures. Raises ApplyError, GitError or EndpointError."""
    source = _read_source(args)
    if not source.cases:
        reason = describe_left_out(source.left_out)
        raise NoCasesError(
            f"{source.name} has no case{f' (left out: {reason})' if reason else ''}; give another"
            " file, repository or --revision"
        )
    contender = _make_contender(args)
    if args.against:
        print(f"sending {len(source.cases)} files to {contender.name}", file=sys.stderr)
    try:
        results = list(_answer_all(contender, source.cases))
    finally:
        contender.close()
    num_misses = write_misses(results, args.failures)
    report = summarise(results) | {
        "contender": contender.name,
        "source": source.name,
        "left_out": source.left_out,
        "misses": num_misses,
        "misses_folder": str(args.failures) if num_misses else None,
    }
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print("\n".join([*_format_head(report), "", format_report(report), *_format_foot(report)]))
    return 0


def _read_source(args: argparse.Namespace) -> CaseSource:
    if args.git is not None:
        found = read_git_cases(
            args.git, revision=args.revision, limit=args.limit or DEFAULT_GIT_LIMIT
        )
        name = f"{args.git} ({found.num_commits} single-file commits before {args.revision})"
        return CaseSource(name, found.cases, found.left_out)
    return CaseSource(str(args.cases), list(islice(read_cases(args.cases), args.limit)))


def _make_contender(args: argparse.Namespace) -> Contender:
    if args.merge_only:
        return MergeContender()
    if args.against:
        base_url, api = split_url(args.against)
        endpoint = Endpoint(
            base_url, api_key=os.environ.get(API_KEY_VARIABLE), timeout_s=args.timeout
        )
        return RemoteContender(endpoint, args.api or api or detect_api(endpoint), model=args.model)
    # torch is imported only by those who need it.
    from apply_service.evaluate.contenders.pipeline import load_contender

    is_of_model = args.no_fallback or args.constraint is not None
    return load_contender(
        model=args.model,
        threads=args.threads,
        has_fallback=not args.no_fallback,
        constraint=args.constraint,
        use_model="always" if is_of_model else None,
    )


def _answer_all(contender: Contender, cases: Sequence[Case]) -> Iterator[CaseResult]:
    progress = Progress(sys.stderr)
    try:
        for number, case in enumerate(cases, start=1):
            progress.show_stage(f"case {number} of {len(cases)}: {case.id}")
            planned = plan_case(case)
            yield CaseResult(
                case,
                contender.answer(case),
                language=planned.language or case.language or "unknown",
                is_unique=planned.is_unique,
            )
    finally:
        progress.clear()


def _format_head(report: Mapping[str, Any]) -> Iterable[str]:
    yield f"{report['cases']} cases of {report['source']}"
    yield f"answered by {report['contender']}"
    if report["left_out"]:
        yield f"left out: {describe_left_out(report['left_out'])}"


def _format_foot(report: Mapping[str, Any]) -> Iterable[str]:
    if report["misses"]:
        yield ""
        yield f"{report['misses']} misses as diffs in {report['misses_folder']}"
