"""Figures of the merge constraint: forced tokens, decisions and target passes.

Both columns come from the engine's own scheduler with an oracle that writes the expected file: a
target pass is every forward that holds a row of the request, those that read the prompt included.
Where the expected file is no path of the grammar the oracle cannot be bound to it: such cases are
listed, and count in both columns as speculation alone. So do updates that are the whole file: it is
the only valid merge, and the service asks no model about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from apply_service.apply.edit_request import Constraint
from apply_service.apply.engine_requests import drafts_of
from apply_service.evaluate.case_statistics import count_summary
from batching.config import SchedulerConfig
from batching.request import EngineRequest, SamplingParams
from benchmarks.drafters.oracle_run import OracleRun, TruthLostError, run_oracle
from benchmarks.drafters.replay_case import ReplayCase

Kind = Literal["path", "whole_file", "not_a_path", "no_grammar"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
# Tokens that are not the tokenizer's own choice may make an answer longer than expected.
ROOM_FACTOR = 2


@dataclass(frozen=True, slots=True)
class ConstrainedCase:
    """One case by speculation alone and, if its expected file is a path, under the constraint."""

    case_id: str
    kind: Kind
    speculated: OracleRun
    constrained: OracleRun | None = None


def measure_constraint(
    cases: Sequence[ReplayCase], *, max_draft_tokens: int, constraint: Constraint
) -> dict[str, Any]:
    """All figures, as JSON has them. Cases that must be refused have no answer to measure."""
    scheduler = replace(SchedulerConfig(), max_draft_tokens=max_draft_tokens)
    measured = [
        _measure(case, scheduler, constraint) for case in cases if not case.case.must_refuse
    ]
    report: dict[str, Any] = {
        "constraint": constraint,
        "scope": "file",
        "tokens_per_step": scheduler.max_tokens_per_step,
        "cases": len(measured),
        "speculation_alone": _passes([one.speculated for one in measured]),
    }
    return report | _compare(measured) if constraint == "merge" else report


def format_constraint(report: Mapping[str, Any]) -> Iterator[str]:
    """The figures as lines of text."""
    yield (
        f"{report['cases']} cases in file scope, {report['tokens_per_step']} tokens a step; a"
        " target pass is every forward that holds a row of the request"
    )
    yield f"{'target passes per case':<34}{'mean':>9}{'median':>9}{'p90':>9}{'all':>10}"
    yield _format_passes("speculation alone", report["speculation_alone"])
    if "merge" not in report:
        return
    yield _format_passes("constraint merge", report["merge"])
    kinds = report["kinds"]
    on_paths, num_paths = report["on_paths"], kinds["path"]
    yield _format_passes("  speculation alone, on paths", on_paths["speculation_alone"])
    yield _format_passes("  constraint merge, on paths", on_paths["merge"])
    yield (
        f"{report['times_fewer']:.1f} times fewer target passes on all cases,"
        f" {on_paths['times_fewer']:.1f} on the {num_paths} whose expected file is a path"
    )
    decisions = report["decisions"]
    yield (
        f"forced {report['forced']:.2%} of the tokens; decisions per case: median"
        f" {decisions['median']}, p90 {decisions['p90']}, most {decisions['max']};"
        f" none in {report['cases_without_decision']}"
    )
    yield (
        f"expected file is a valid merge in {kinds['path'] + kinds['whole_file']} of"
        f" {report['cases']}, {kinds['whole_file']} of them sent whole"
    )
    for kind, label in (("not_a_path", "is no path"), ("no_grammar", "has no grammar")):
        yield f"expected file {label}: {kinds[kind]} of {report['cases']}"
        yield from (f"    {case_id}" for case_id in report[kind])


def _measure(
    case: ReplayCase, scheduler: SchedulerConfig, constraint: Constraint
) -> ConstrainedCase:
    request = EngineRequest(
        request_id=case.case.id,
        prompt_token_ids=tuple(case.prompt.token_ids),
        sampling=SamplingParams(
            max_tokens=ROOM_FACTOR * len(case.answer), stop_token_ids=case.prompt.stop_token_ids
        ),
        max_draft_tokens=scheduler.max_draft_tokens,
    )
    proposer = drafts_of(
        case.prompt, predicted_token_ids=case.predicted, rival_token_ids=case.rival
    )
    speculated = run_oracle(
        replace(request, proposer=proposer), case.answer, scheduler_config=scheduler
    )
    merges = case.try_constrain() if constraint == "merge" else None
    if merges is None and case.is_sent_whole:
        return ConstrainedCase(case.case.id, "whole_file", speculated)
    if merges is None:
        return ConstrainedCase(case.case.id, "no_grammar", speculated)
    try:
        constrained = run_oracle(
            replace(request, constraint=merges.grammar()),
            case.answer,
            scheduler_config=scheduler,
            spell=merges.form.symbols,
        )
    except TruthLostError:
        return ConstrainedCase(case.case.id, "not_a_path", speculated)
    return ConstrainedCase(case.case.id, "path", speculated, constrained)


def _compare(measured: Sequence[ConstrainedCase]) -> dict[str, Any]:
    """The figures of the constraint beside those without it."""
    on_paths = [(one.speculated, one.constrained) for one in measured if one.constrained]
    bound = [constrained for _, constrained in on_paths]
    all_runs = [one.constrained or one.speculated for one in measured]
    speculated = [one.speculated for one in measured]
    num_tokens = sum(run.stats.num_output_tokens for run in bound)
    return {
        "merge": _passes(all_runs),
        "times_fewer": _times_fewer(speculated, all_runs),
        "on_paths": {
            "speculation_alone": _passes([alone for alone, _ in on_paths]),
            "merge": _passes(bound),
            "times_fewer": _times_fewer([alone for alone, _ in on_paths], bound),
        },
        "forced": sum(run.stats.forced for run in bound) / max(1, num_tokens),
        "decisions": count_summary([run.num_decisions for run in bound]),
        "cases_without_decision": sum(not run.num_decisions for run in bound),
        "kinds": {kind: len(_ids(measured, kind)) for kind in _KINDS},
        "not_a_path": _ids(measured, "not_a_path"),
        "no_grammar": _ids(measured, "no_grammar"),
    }


def _passes(runs: Sequence[OracleRun]) -> dict[str, float]:
    asking = sum(run.num_asking_passes for run in runs)
    return {**count_summary([run.stats.target_passes for run in runs]), "asking": asking}


def _times_fewer(before: Sequence[OracleRun], after: Sequence[OracleRun]) -> float:
    """Pooled passes over pooled passes."""
    num_after = sum(run.stats.target_passes for run in after)
    return sum(run.stats.target_passes for run in before) / max(1, num_after)


def _ids(measured: Sequence[ConstrainedCase], kind: Kind) -> list[str]:
    return [one.case_id for one in measured if one.kind == kind]


def _format_passes(label: str, passes: Mapping[str, float]) -> str:
    return (
        f"{label:<34}{passes['mean']:>9.2f}{passes['median']:>9}{passes['p90']:>9}"
        f"{passes['all']:>10}"
    )
