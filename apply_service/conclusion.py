"""From lines to an outcome: the verdict over a plan and its result, and the diff."""

from __future__ import annotations

import time
from dataclasses import replace

from apply_service.edit.diff import unified_diff
from apply_service.edit.finding import Finding
from apply_service.edit.merge import splice
from apply_service.edit.verdict import AnswerEnding, Verdict, judge
from apply_service.edit_plan import EditPlan
from apply_service.outcome import Outcome, Source
from batching.events import RequestStats

_UNCONFIRMED = Finding(
    code="place_unconfirmed",
    severity="warning",
    message="the model's answer could not be used, and anchors alone do not decide where all parts"
    " of the update go",
    hint="check the places in the diff, or add an unchanged line before and after each part",
)


def conclude(
    plan: EditPlan,
    lines: tuple[str, ...],
    *,
    source: Source,
    ending: AnswerEnding = "complete",
) -> Outcome:
    """Judge the lines of a whole file as the result of a plan."""
    return Outcome(
        request_id=plan.request_id,
        verdict=_judge(plan, lines, ending),
        original=plan.edit.original,
        file=plan.file,
        lines=lines,
        diff=unified_diff(plan.edit.original.decode(), plan.file.join(lines), path=plan.edit.path),
        source=source,
        total_s=time.monotonic() - plan.started_at,
    )


def conclude_decided(plan: EditPlan) -> Outcome:
    """The outcome of a plan that needs no model."""
    assert plan.decision is not None, "only a decided plan needs no model"
    outcome = conclude(plan, plan.decision.lines, source=plan.decision.source)
    if not plan.is_impossible or plan.merge is None:
        return outcome
    # Nothing was merged, so what is wrong is the update's place and not the text.
    return replace(outcome, verdict=Verdict("rejected", plan.merge.findings))


def try_conclude_merge(plan: EditPlan) -> Outcome | None:
    """The best deterministic merge with its verdict, if there is one.

    Without a model that says the same, only places that anchors decide are trusted.
    """
    if plan.merge is None or plan.merge.best is None:
        return None
    lines = tuple(splice(plan.original_lines, plan.merge.best))
    outcome = conclude(plan, lines, source="merge")
    if plan.merge.is_unique or outcome.verdict.status != "applied":
        return outcome
    findings = (*outcome.verdict.findings, _UNCONFIRMED)
    return replace(
        outcome, verdict=replace(outcome.verdict, status="needs_review", findings=findings)
    )


def with_figures(outcome: Outcome, plan: EditPlan, stats: list[RequestStats]) -> Outcome:
    """The outcome with the figures of all requests that were made for it."""
    total_s = time.monotonic() - plan.started_at
    return replace(outcome, stats=RequestStats.total(stats), total_s=total_s)


def _judge(plan: EditPlan, lines: tuple[str, ...], ending: AnswerEnding) -> Verdict:
    return judge(
        plan.original_lines,
        plan.update_lines if plan.snippet is None else plan.snippet,
        lines,
        ending=ending,
        plan=plan.merge,
        tree=plan.tree,
    )
