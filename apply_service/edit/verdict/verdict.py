"""Judges if a result may be trusted, by deterministic checks of (original, update, result).

Two questions. Is the result one of the likelier merges of the plan? If so, only the choice among
them can be wrong; if not, the checks say what is. The status follows from the worst finding: an
error rejects, a warning asks for review. The rules stand in `docs/verdicts.md`, one code each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from apply_service.edit.finding import Finding
from apply_service.edit.read.markers import split_segments
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.verdict.checks import (
    CHECKS,
    MERGE_CHECKS,
    check_blank_lines,
    check_neighbours,
)
from apply_service.edit.verdict.comparison import Comparison
from apply_service.edit.verdict.double_checks import check_defined_twice
from apply_service.edit.verdict.loss_checks import LOSS_CHECKS
from apply_service.edit.verdict.place_checks import check_membership, check_place
from apply_service.edit.verdict.reach_checks import check_unreachable

if TYPE_CHECKING:
    from apply_service.edit.place.merge import MergePlan
    from apply_service.edit.place.placement import Placement
    from apply_service.edit.syntax.syntax import SyntaxTree

Status = Literal["applied", "unchanged", "needs_review", "rejected"]
AnswerEnding = Literal["complete", "length", "malformed"]

MAX_FINDINGS_PER_CODE = 10


@dataclass(frozen=True, slots=True)
class RemovedLine:
    """A filled line of the original, `number` from 1, that the result no longer has there."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a result, the findings behind it, and the lines that the result lost."""

    status: Status
    findings: tuple[Finding, ...] = ()
    removed_lines: tuple[RemovedLine, ...] = ()


def judge(
    original_lines: Sequence[str],
    update: Sequence[str] | Snippet,
    result_lines: Sequence[str],
    *,
    ending: AnswerEnding = "complete",
    plan: MergePlan | None = None,
    tree: SyntaxTree | None = None,
    confirmed: Collection[Placement] = (),
) -> Verdict:
    """Check one result; an answer that did not end properly is judged by that alone.

    `update` are the lines as they were sent, or what `read_snippet` made of them. `plan` is the
    merge of the same original and update: without it the place of the new lines is not judged.
    `tree` is the syntax of the original: without it imports and definitions are only lines.
    `confirmed` are placements of the plan's choices among which somebody who knows better has
    chosen: if these are all, the result is not in doubt.
    """
    if ending != "complete":
        return Verdict("rejected", (_truncated(ending),))
    snippet = update if isinstance(update, Snippet) else _read(update, original_lines)
    comparison = Comparison(original_lines, snippet, result_lines, tree=tree)
    findings = list(_findings(comparison, plan, confirmed))
    is_changed = comparison.original != comparison.result
    status = status_of(findings, is_changed=is_changed)
    return Verdict(status, tuple(findings), tuple(_removed_lines(comparison)))


def status_of(findings: Sequence[Finding], *, is_changed: bool) -> Status:
    """The status that a list of findings means."""
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "rejected"
    if "warning" in severities:
        return "needs_review"
    return "applied" if is_changed else "unchanged"


def _findings(
    comparison: Comparison, plan: MergePlan | None, confirmed: Collection[Placement]
) -> Iterator[Finding]:
    number = None if plan is None else _merge_number(comparison, plan)
    if plan is not None and number is not None:
        yield from check_place(plan, number, confirmed=confirmed)
    if plan is not None and number in plan.likely:
        for check in (*MERGE_CHECKS, check_defined_twice, check_unreachable):
            yield from _capped(check(comparison))
        for check in LOSS_CHECKS:
            yield from _capped(one for one in check(comparison) if one.severity == "error")
        return
    num_found = 0
    for check in (*CHECKS, check_defined_twice, check_unreachable):
        for finding in _capped(check(comparison)):
            num_found += 1
            yield finding
    if not num_found:
        yield from _capped(check_neighbours(comparison))
    if plan is not None and number is None:
        yield from plan.findings
        yield from check_membership(comparison.result, plan)


def _merge_number(comparison: Comparison, plan: MergePlan) -> int | None:
    """Which merge the result is, with blank lines as original and update have them."""
    number = plan.number_of(comparison.result)
    if number is None and not any(check_blank_lines(comparison)):
        number = plan.number_of(comparison.result, ignores_blank_lines=True)
    return number


def _removed_lines(comparison: Comparison) -> Iterator[RemovedLine]:
    for hunk in comparison.hunks:
        inserted = Counter(comparison.inserted_texts(hunk))
        for place in comparison.lost_places(hunk):
            text = comparison.original_texts[place]
            inserted[text] -= 1
            if inserted[text] < 0:
                yield RemovedLine(place + 1, comparison.original[place])


def _read(update_lines: Sequence[str], original_lines: Sequence[str]) -> Snippet:
    """The update as a snippet; an unreadable one is only cut at its markers."""
    try:
        return read_snippet(update_lines, original_lines)
    except SnippetError:
        return Snippet(
            format="lazy",
            segments=tuple(
                Segment(lines=tuple(SegmentLine(text, 0) for text in segment))
                for segment in split_segments(update_lines, original_lines)
            ),
        )


def _capped(findings: Iterator[Finding]) -> Iterator[Finding]:
    """At most `MAX_FINDINGS_PER_CODE` of a check; the last one then counts the others."""
    kept = [finding for _, finding in zip(range(MAX_FINDINGS_PER_CODE), findings, strict=False)]
    num_more = sum(1 for _ in findings)
    yield from kept[:-1] if num_more else kept
    if num_more:
        last = kept[-1]
        yield replace(last, message=f"{last.message}; and {num_more} more like this")


def _truncated(ending: AnswerEnding) -> Finding:
    reason = {
        "length": "the answer reached its token limit before its end",
        "malformed": "the answer does not have the form that the prompt asks for",
    }
    return Finding(
        code="truncated",
        severity="error",
        message=reason.get(ending, ending),
        hint="raise max_tokens, send a smaller file, or use a stronger model",
    )
