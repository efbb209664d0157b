"""Turns an attempt into an outcome: the verdict on its lines, and the diff."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from apply_service.apply.attempt import Attempt, try_merge
from apply_service.apply.choices import Choice, Doubt, choice_id
from apply_service.apply.errors import LimitError, UnknownChoiceError
from apply_service.apply.judge.word import Word
from apply_service.apply.outcome import JudgeWord, Outcome, Source
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.edit.finding import Finding
from apply_service.edit.place.merge import MergePlan
from apply_service.edit.text.diff import unified_diff
from apply_service.edit.text.work_budget import BudgetSpentError, limited_work
from apply_service.edit.verdict.verdict import Verdict, judge, status_of
from apply_service.shown_text import shortened
from batching.events import RequestStats

# A wider region or the file may have one, so this is of one attempt only.
_NO_VALID_MERGE = Finding(
    code="no_valid_merge",
    severity="warning",
    message="the model wrote this part of the file freely, because its valid merges could not be"
    " offered",
    hint="compare the result with the update line by line, or send a shorter update",
)


def _dropped_retry(reason: str, hint: str) -> Finding:
    return Finding(
        code="retry_dropped",
        severity="warning",
        message=f"the model was not asked about a wider part of the file, because {reason}",
        hint=hint,
    )


_DROPPED_FOR_TIME = _dropped_retry(
    "the deadline left no time",
    "send the edit again, with a longer deadline if the service takes one",
)
_DROPPED_FOR_ROOM = _dropped_retry("the server is too busy", "send the edit again later")


def _unconfirmed(reason: LimitError) -> Finding:
    return Finding(
        code="place_unconfirmed",
        severity="warning",
        message=f"the model could not be asked about this merge: {reason}",
        hint="check the places in the diff, or add an unchanged line before and after each part",
    )


def _unjudged(limit: int) -> Finding:
    return Finding(
        code="too_much_to_compare",
        severity="warning",
        message="the check of the result takes more comparisons than an edit may make; the limit"
        f" is {limit}",
        hint="check the places in the diff, or split the update into several requests",
    )


def conclude(plan: EditPlan, attempt: Attempt) -> Outcome:
    """Judge the lines of an attempt as the result of a plan, with the model's judgement of them."""
    assert attempt.lines is not None, "an attempt is judged once its lines are known"
    verdict = _judge(plan, attempt.lines, attempt)
    testimony = attempt.testimony
    if testimony is not None and attempt.ending == "complete":
        verdict = _with_findings(verdict, *testimony.doubts())
    if attempt.lacks_constraint:
        verdict = _with_findings(verdict, _NO_VALID_MERGE)
    outcome = replace(
        _outcome(plan, attempt.lines, verdict, source=attempt.source),
        ending=attempt.ending,
        scope=attempt.scope,
        regions=attempt.regions,
    )
    if testimony is None:
        return replace(outcome, confidence=_confidence(plan, attempt.lines))
    return replace(
        outcome,
        confidence=testimony.confidence * (1.0 if plan.merge is None else plan.merge.mass),
        decisions=testimony.decisions,
        evidence=testimony.evidence,
    )


def conclude_decided(plan: EditPlan) -> Outcome:
    """The outcome of a plan that needs no model."""
    assert plan.decision is not None, "only a decided plan needs no model"
    if plan.is_impossible and plan.merge is not None:
        return _conclude_unmerged(plan, plan.merge)
    return conclude(plan, Attempt(source=plan.decision.source, lines=plan.decision.lines))


def conclude_resolved(plan: EditPlan, resolve: str) -> Outcome:
    """The text that the caller chose among those offered. Raises UnknownChoiceError."""
    texts = () if plan.merge is None else doubt_about(plan, plan.merge).texts()
    chosen = next((lines for lines in texts if choice_id(plan.edit, lines) == resolve), None)
    if chosen is None:
        raise UnknownChoiceError(
            f"{shortened(resolve)!r} is no choice of this edit; send the texts, instruction, path"
            " and language with which it was offered, or one of the choices that come with this"
            " error",
            choices_of(plan),
        )
    outcome = conclude(plan, Attempt(source="resolved", lines=chosen))
    findings = tuple(one for one in outcome.verdict.findings if one.code == "syntax_error")
    status = status_of(findings, is_changed=chosen != plan.original_lines)
    verdict = replace(outcome.verdict, status=status, findings=findings)
    return replace(outcome, verdict=verdict, confidence=None)


def choices_of(plan: EditPlan) -> tuple[Choice, ...]:
    """What the edit may mean, the likeliest merge first; none if there is no merge."""
    return () if plan.merge is None else doubt_about(plan, plan.merge).choices()


def doubt_about(plan: EditPlan, merge: MergePlan) -> Doubt:
    """What a plan with a merge leaves open."""
    return Doubt(plan.edit, plan.update_lines, merge, plan.tree)


def settle_doubt(plan: EditPlan, outcome: Outcome, *, offers_choices: bool = True) -> Outcome:
    """What the caller wants of a result in doubt: a question, the likeliest merge, or none.

    A merge with a syntax error that the original has not is not taken for certain.
    """
    status, on_doubt, merge = outcome.verdict.status, plan.edit.on_doubt, plan.merge
    if status not in ("needs_review", "rejected") or outcome.source == "resolved" or merge is None:
        return outcome
    if on_doubt == "refuse":
        return replace(outcome, verdict=replace(outcome.verdict, status="rejected"))
    choices = choices_of(plan) if offers_choices else ()
    if on_doubt == "ask":
        return replace(outcome, choices=choices)
    is_broken = any(one.code == "syntax_error" for one in outcome.verdict.findings)
    if status == "needs_review" and merge.number_of(outcome.lines) == 0 and not is_broken:
        return replace(outcome, verdict=replace(outcome.verdict, status="applied"))
    return replace(outcome, choices=choices)


def is_question(plan: EditPlan, outcome: Outcome) -> bool:
    """True if a caller is asked which merge is meant, and an answer would settle it."""
    return (
        bool(outcome.choices)
        and outcome.verdict.status == "needs_review"
        and plan.edit.on_doubt == "ask"
        and plan.edit.has_fallback
        and plan.merge is not None
        and not plan.merge.is_certain
    )


def heed(plan: EditPlan, outcome: Outcome, word: Word) -> Outcome:
    """A question after a judge's word: what it named, if that is certain by now, or the question.

    Nothing but the choice among the merges is the judge's: what the checks find wrong with the one
    that it named stays in doubt.
    """
    assert plan.merge is not None, "a question has choices"
    named = None if word.number is None else outcome.choices[word.number].id
    said = JudgeWord(choice=named, model=word.model, seconds=word.seconds)
    ids = [choice_id(plan.edit, lines) for lines in plan.merge.merges]
    if named is not None and named not in ids:
        return replace(outcome, judge=said)  # of a text that was made no weight is known
    number = None if named is None else ids.index(named)
    told = plan.merge.told(number, accuracy=word.accuracy)
    if number is not None and told.is_certain:
        attempt = Attempt(source="judge", lines=told.merges[0])
        chosen = conclude(replace(plan, merge=told), attempt)
        if chosen.verdict.status in ("applied", "unchanged"):
            return replace(chosen, stats=outcome.stats, judge=said)
    return replace(
        outcome,
        choices=_choices_told(plan, told, outcome),
        judge=said,
        confidence=_confidence_told(told, outcome),
        total_s=time.monotonic() - plan.started_at,
    )


def _choices_told(plan: EditPlan, told: MergePlan, outcome: Outcome) -> tuple[Choice, ...]:
    """The same choices, the likeliest first by what is known now."""
    shares = {
        choice_id(plan.edit, lines): round(math.exp(weight), 4)
        for lines, weight in zip(told.merges, told.weights, strict=True)
    }
    choices = [
        replace(choice, probability=shares.get(choice.id, choice.probability))
        for choice in outcome.choices
    ]
    return tuple(sorted(choices, key=lambda choice: -choice.probability))


def _confidence_told(told: MergePlan, outcome: Outcome) -> float | None:
    """The probability that the text of a question is right, where it is one of the merges."""
    number = told.number_of(outcome.lines)
    if outcome.confidence is None or outcome.decisions or number is None:
        return outcome.confidence
    return math.exp(told.weights[number])


def without_retry(outcome: Outcome, *, is_late: bool) -> Outcome:
    """Add to the outcome that a wider attempt, which might have been better, was not made."""
    if outcome.verdict.status not in ("needs_review", "rejected"):
        return outcome
    finding = _DROPPED_FOR_TIME if is_late else _DROPPED_FOR_ROOM
    return replace(outcome, verdict=_with_findings(outcome.verdict, finding))


def is_proven(merge: MergePlan) -> bool:
    """True if the best merge can be trusted without a model."""
    return merge.is_certain


def may_conclude_alone(plan: EditPlan) -> bool:
    """True if `try_conclude_alone` may return an outcome.

    Judges by the plan alone, without a verdict.
    """
    if plan.decision is not None or plan.edit.resolve is not None:
        return True
    use_model, merge = plan.edit.use_model, plan.merge
    if use_model == "always" or merge is None:
        return False
    return use_model == "never" or is_proven(merge)


def try_conclude_alone(plan: EditPlan) -> Outcome | None:
    """The outcome of a plan that needs no model, or None if a model must be asked.

    A plan needs no model if it is decided already, if the caller wants no model, or, where the
    choice is left to us, if the merge is proven and nothing is wrong with it.

    Raises UnknownChoiceError.
    """
    if not may_conclude_alone(plan):
        return None
    if plan.edit.resolve is not None:
        return conclude_resolved(plan, plan.edit.resolve)
    if plan.decision is not None:
        return conclude_decided(plan)
    assert plan.merge is not None, "without a merge only a decision needs no model"
    outcome = try_conclude_merge(plan)
    if outcome is None:
        return _conclude_unmerged(plan, plan.merge)
    is_good = outcome.verdict.status in ("applied", "unchanged")
    return outcome if is_good or plan.edit.use_model == "never" else None


def try_conclude_merge(plan: EditPlan) -> Outcome | None:
    """The likeliest merge with its verdict, or None if there is none."""
    attempt = try_merge(plan)
    return None if attempt is None else conclude(plan, attempt)


def try_conclude_unasked(plan: EditPlan, reason: LimitError) -> Outcome | None:
    """The likeliest merge where `reason` prevents asking the model.

    None where the caller wants no fallback, or where no merge may be returned.
    """
    merged = try_conclude_merge(plan) if plan.edit.has_fallback else None
    if merged is None or merged.verdict.status == "rejected":
        return None
    if merged.verdict.status == "needs_review":
        return replace(merged, verdict=_with_findings(merged.verdict, _unconfirmed(reason)))
    return merged


def with_figures(outcome: Outcome, plan: EditPlan, stats: list[RequestStats]) -> Outcome:
    """Add the figures of all requests of an edit to its outcome."""
    total_s = time.monotonic() - plan.started_at
    return replace(outcome, stats=RequestStats.total(stats), total_s=total_s)


def _conclude_unmerged(plan: EditPlan, merge: MergePlan) -> Outcome:
    """The original, rejected: the update's place is at fault, not its text."""
    verdict = Verdict("rejected", merge.findings)
    return _outcome(plan, plan.original_lines, verdict, source="original")


def _outcome(
    plan: EditPlan, lines: tuple[str, ...], verdict: Verdict, *, source: Source
) -> Outcome:
    return Outcome(
        request_id=plan.request_id,
        verdict=verdict,
        original=plan.edit.original,
        file=plan.file,
        lines=lines,
        diff=unified_diff(plan.edit.original.decode(), plan.file.join(lines), path=plan.edit.path),
        source=source,
        total_s=time.monotonic() - plan.started_at,
    )


def _confidence(plan: EditPlan, lines: Sequence[str]) -> float | None:
    """The probability that a text is right, where it is the likeliest merge."""
    merge = plan.merge
    return merge.certainty if merge is not None and merge.number_of(lines) == 0 else None


def _with_findings(verdict: Verdict, *findings: Finding) -> Verdict:
    """Add findings to a verdict, and set the status that all of them mean."""
    found = (*verdict.findings, *findings)
    return replace(
        verdict, findings=found, status=status_of(found, is_changed=verdict.status != "unchanged")
    )


def _judge(plan: EditPlan, lines: tuple[str, ...], attempt: Attempt) -> Verdict:
    testimony = attempt.testimony
    try:
        with limited_work():
            return judge(
                plan.original_lines,
                plan.update_lines if plan.snippet is None else plan.snippet,
                lines,
                ending=attempt.ending,
                plan=plan.merge,
                tree=plan.tree,
                confirmed=() if testimony is None else testimony.confirmed,
            )
    except BudgetSpentError as error:
        is_changed = lines != plan.original_lines
        findings = (_unjudged(error.limit),)
        return Verdict(status_of(findings, is_changed=is_changed), findings)
