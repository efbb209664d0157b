"""`apply-service bench accuracy`: how often the merged file is right, and how often it says so.

A case is exact when the answer is the expected file byte for byte. A silent error is an answer with
status `applied` that is not exact; of a silent loss a line of the original or of the snippet is
missing. Shares are of all cases that have an answer, with their 95 % Wilson interval.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from apply_service.apply.edit_request import Constraint
from apply_service.apply.errors import ApplyError
from apply_service.evaluate.accuracy_report import format_accuracy_report, summarise_accuracy
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.case_result import CaseResult
from apply_service.evaluate.cases.git_cases import describe_left_out, read_git_cases
from apply_service.evaluate.cases.misses import write_misses
from apply_service.evaluate.cases.planned_case import plan_case
from apply_service.evaluate.contenders.contender import Contender, MergeContender
from apply_service.evaluate.contenders.endpoint import Endpoint
from apply_service.evaluate.contenders.remote import (
    API_KEY_VARIABLE,
    RemoteContender,
    detect_api,
    split_url,
)
from apply_service.evaluate.contenders.wire_formats import Api
from apply_service.observe.progress import tracked
from apply_service.shown_text import say, shown

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyOptions:
    """What is measured: one source of cases (`cases` or `git`), and who answers them."""

    cases: Path | None
    git: Path | None
    revision: str
    limit: int | None
    merge_only: bool
    no_fallback: bool
    constraint: Constraint | None
    against: str | None
    api: Api | None
    timeout: float
    model: str | None
    threads: str | None
    failures: Path
    json: bool


def run_accuracy(options: AccuracyOptions) -> int:
    """Run the bench and print its figures. Raises ApplyError, GitError or EndpointError."""
    source = _read_source(options)
    if not source.cases:
        reason = describe_left_out(source.left_out)
        raise NoCasesError(
            f"{source.name} has no case{f' (left out: {reason})' if reason else ''}; give another"
            " file, repository or --revision"
        )
    contender = _make_contender(options)
    if options.against:
        say(f"sending {len(source.cases)} files to {contender.name}")
    try:
        results = list(_answer_all(contender, source.cases))
    finally:
        contender.close()
    num_misses = write_misses(results, options.failures)
    report = summarise_accuracy(results) | {
        "contender": contender.name,
        "source": source.name,
        "left_out": source.left_out,
        "misses": num_misses,
        "misses_folder": str(options.failures) if num_misses else None,
    }
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        text = format_accuracy_report(report)
        print(shown("\n".join([*_format_head(report), "", text, *_format_foot(report)])))
    return 0


def _read_source(options: AccuracyOptions) -> CaseSource:
    if options.git is not None:
        found = read_git_cases(
            options.git, revision=options.revision, limit=options.limit or DEFAULT_GIT_LIMIT
        )
        name = f"{options.git} ({found.num_commits} single-file commits before {options.revision})"
        return CaseSource(name, found.cases, found.left_out)
    assert options.cases is not None
    return CaseSource(str(options.cases), list(islice(read_cases(options.cases), options.limit)))


def _make_contender(options: AccuracyOptions) -> Contender:
    if options.merge_only:
        return MergeContender()
    if options.against:
        base_url, api = split_url(options.against)
        endpoint = Endpoint(
            base_url, api_key=os.environ.get(API_KEY_VARIABLE), timeout_s=options.timeout
        )
        return RemoteContender(
            endpoint, options.api or api or detect_api(endpoint), model=options.model
        )
    # torch is imported only by those who need it.
    from apply_service.evaluate.contenders.pipeline import load_contender

    is_of_model = options.no_fallback or options.constraint is not None
    return load_contender(
        model=options.model,
        threads=options.threads,
        has_fallback=not options.no_fallback,
        constraint=options.constraint,
        use_model="always" if is_of_model else None,
    )


def _answer_all(contender: Contender, cases: Sequence[Case]) -> Iterator[CaseResult]:
    for case in tracked(cases, name=lambda case: case.id):
        planned = plan_case(case)
        yield CaseResult(
            case,
            contender.answer(case),
            language=planned.language or case.language or "unknown",
            is_certain=planned.is_certain,
        )


def _format_head(report: Mapping[str, Any]) -> Iterable[str]:
    yield f"{report['cases']} cases of {report['source']}"
    yield f"answered by {report['contender']}"
    if report["left_out"]:
        yield f"left out: {describe_left_out(report['left_out'])}"


def _format_foot(report: Mapping[str, Any]) -> Iterable[str]:
    if report["misses"]:
        yield ""
        yield f"{report['misses']} misses as diffs in {report['misses_folder']}"
