"""`apply-service bench latency`: seconds of real edits, from text to verdict, by the way they take.

The whole pipeline runs in this process with the service's settings. Each edit takes these ways:

`no_model`: the merge decides alone (`use_model` auto); only edits that need no model take it.
`cold`: the model is asked (`use_model` always), and nothing of the prompt was computed before.
`warm`: the same code was sent before with another instruction, so its part of the prompt is there.
`repeat`: the very same edit was sent before.
`file_cold`, `file_warm`: cold and warm with scope "file", for files over `--min-lines` lines that
fit the model.

Finished edits are kept in `--out`, and another run with the same file goes on behind them.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import ApplyError
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.evaluate.edit_session import (
    EditSession,
    EditTiming,
    SessionOptions,
    session_settings,
)
from apply_service.evaluate.latency_report import (
    LatencyRow,
    TimedRun,
    format_latency_report,
    summarise_latency,
)
from apply_service.evaluate.run_log import RunLog
from apply_service.observe.progress import Progress, tracked
from apply_service.shown_text import shown

# Sent before a warm run: with an instruction of its own a prompt differs behind the code.
_EARLIER_INSTRUCTION = "Apply an earlier change of the same code."


class LatencyBenchError(ApplyError):
    """There is nothing to time."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One case in one scope."""

    case: Case
    scope: Literal["auto", "file"]

    @property
    def key(self) -> tuple[str, str]:
        return self.case.id, self.scope


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions:
    """How many edits of which cases are timed, and how long a long file is."""

    cases: Path
    limit: int
    long_limit: int
    min_lines: int
    seed: int
    out: Path | None
    json: bool
    session: SessionOptions


def run_latency(options: LatencyOptions) -> int:
    """Run the bench and print its figures."""
    cases = _shuffled_cases(options)
    with EditSession.load(session_settings(options.session).settings) as session:
        facts = {"bench": "latency", "cases": _digest(options.cases), "seed": options.seed}
        facts |= session.describe()
        log = RunLog(options.out, identity=facts, row_type=LatencyRow)
        report = {**facts, **_measure(session, cases, log, options)}
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(shown(format_latency_report(report)))
    return 0


def _measure(
    session: EditSession, cases: list[Case], log: RunLog[LatencyRow], options: LatencyOptions
) -> dict[str, Any]:
    """Time what the log lacks; the figures of everything that was asked for."""
    row_by_key = {(row.case_id, row.scope): row for row in log.rows}
    _run_edit(session, replace(_edit_of(_Job(cases[0], "auto")), cache_salt=b"warm-up"))

    def row_of(job: _Job) -> LatencyRow:
        if job.key not in row_by_key:
            row_by_key[job.key] = _time_job(session, job)
            log.add(row_by_key[job.key])
        return row_by_key[job.key]

    rows = []
    for case in tracked(cases[: options.limit], name=lambda case: case.id):
        rows.append(row_of(_Job(case, "auto")))
    pairs: list[tuple[LatencyRow, LatencyRow]] = []
    num_too_long = 0
    progress = Progress(sys.stderr, has_clock=False)
    for case in cases:
        if len(pairs) == options.long_limit:
            break
        if case.original.count("\n") <= options.min_lines:
            continue
        progress.show_item(f"long file {case.id}", len(pairs) + 1, options.long_limit)
        whole = row_of(_Job(case, "file"))
        if whole.runs["file_cold"].timing.target_passes:
            pairs.append((row_of(_Job(case, "auto")), whole))
        else:
            num_too_long += whole.runs["file_cold"].timing.problem == "prompt-too-long"
    progress.clear()
    return {
        "limit": options.limit,
        "min_lines": options.min_lines,
        "use_model": {"no_model": "auto", "all others": "always"},
        "long_files_over_the_context": num_too_long,
        **summarise_latency(rows, pairs),
    }


def _time_job(session: EditSession, job: _Job) -> LatencyRow:
    return LatencyRow(
        case_id=job.case.id,
        scope=job.scope,
        num_lines=job.case.original.count("\n"),
        runs=dict(_timed_runs(session, job)),
    )


def _timed_runs(session: EditSession, job: _Job) -> Iterator[tuple[str, TimedRun]]:
    """The ways that an edit can take, one after another; salts keep their prompts apart."""
    edit = _edit_of(job)
    prefix = "file_" if job.scope == "file" else ""
    if job.scope == "auto" and _needs_no_model(edit, session.settings.max_file_bytes):
        yield "no_model", _run_edit(session, replace(edit, use_model="auto"))
    first = replace(edit, cache_salt=f"{job.case.id} {job.scope} first".encode())
    cold = _run_edit(session, first)
    yield f"{prefix}cold", cold
    if not cold.timing.target_passes:
        return
    if job.scope == "auto":
        yield "repeat", _run_edit(session, first)
    second = replace(edit, cache_salt=f"{job.case.id} {job.scope} second".encode())
    _run_edit(session, _earlier(second))
    yield f"{prefix}warm", _run_edit(session, second)


def _earlier(edit: EditRequest) -> EditRequest:
    """An edit of the same code by another prompt, of whose answer one token is written.

    It is written freely: tokens that are known beforehand would need no prompt.
    """
    return replace(
        edit,
        instruction=_EARLIER_INSTRUCTION,
        constraint="none",
        sampling=replace(edit.sampling, max_tokens=1),
        has_fallback=False,
    )


def _edit_of(job: _Job) -> EditRequest:
    return replace(edit_of_case(job.case), scope=job.scope, use_model="always")


def _needs_no_model(edit: EditRequest, max_file_bytes: int) -> bool:
    try:
        plan = plan_edit(replace(edit, use_model="auto"), max_file_bytes=max_file_bytes)
    except (ApplyError, SnippetError):
        return False
    return try_conclude_alone(plan) is not None


def _run_edit(session: EditSession, edit: EditRequest) -> TimedRun:
    group = session.run([edit])
    timing: EditTiming = group.edits[0]
    return TimedRun(timing=timing, draft_s=group.schedule_s, model_s=group.execute_s)


def _shuffled_cases(options: LatencyOptions) -> list[Case]:
    """All cases that have an answer, in an order that the seed decides."""
    for name in ("limit", "long_limit"):
        if getattr(options, name) < 0:
            flag = "--" + name.replace("_", "-")
            raise LatencyBenchError(f"{flag} is {getattr(options, name)}; give a number from 0 on")
    cases = [case for case in read_cases(options.cases) if not case.must_refuse]
    if not cases or not options.limit + options.long_limit:
        raise LatencyBenchError(
            f"{options.cases} has {len(cases)} cases with an answer, and --limit {options.limit}"
            f" and --long-limit {options.long_limit} ask for some of them; at least 1 case is"
            " needed"
        )
    random.Random(options.seed).shuffle(cases)
    return cases


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
