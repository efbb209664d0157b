"""May a result be trusted? Deterministic checks of (original, update, result), as findings.

The status follows from the worst finding: an error rejects, a warning asks for review. The rules
stand in `docs/verdicts.md`, one code each; `status_of` is the only place that turns them to a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.edit.checks import CHECKS, check_neighbours
from apply_service.edit.comparison import Comparison
from apply_service.edit.finding import Finding

Status = Literal["applied", "unchanged", "needs_review", "rejected"]
AnswerEnding = Literal["complete", "length", "malformed"]

MAX_FINDINGS_PER_CODE = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a result and what led to it."""

    status: Status
    findings: tuple[Finding, ...] = ()


def judge(
    original_lines: Sequence[str],
    update_lines: Sequence[str],
    result_lines: Sequence[str],
    *,
    ending: AnswerEnding = "complete",
) -> Verdict:
    """Check one result. An answer that did not end properly is judged by that alone."""
    if ending != "complete":
        return Verdict("rejected", (_truncated(ending),))
    comparison = Comparison(original_lines, update_lines, result_lines)
    findings: list[Finding] = []
    for check in CHECKS:
        findings.extend(_capped(check(comparison)))
    if not findings:
        findings.extend(_capped(check_neighbours(comparison)))
    is_changed = list(original_lines) != list(result_lines)
    return Verdict(status_of(findings, is_changed=is_changed), tuple(findings))


def status_of(findings: Sequence[Finding], *, is_changed: bool) -> Status:
    """The status that a list of findings means."""
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "rejected"
    if "warning" in severities:
        return "needs_review"
    return "applied" if is_changed else "unchanged"


def _capped(findings: Iterator[Finding]) -> Iterator[Finding]:
    """At most `MAX_FINDINGS_PER_CODE` of a check; the last one then counts the others."""
    kept = [finding for _, finding in zip(range(MAX_FINDINGS_PER_CODE), findings, strict=False)]
    num_more = sum(1 for _ in findings)
    yield from kept[:-1] if num_more else kept
    if num_more:
        last = kept[-1]
        yield Finding(
            code=last.code,
            severity=last.severity,
            message=f"{last.message}; and {num_more} more like this",
            hint=last.hint,
            line=last.line,
        )


def _truncated(ending: AnswerEnding) -> Finding:
    reason = {
        "length": "the answer reached its token limit before its end",
        "malformed": "the answer does not have the form that the model was asked for",
    }
    return Finding(
        code="truncated",
        severity="error",
        message=reason.get(ending, ending),
        hint="raise sampling.max_tokens, send a smaller file, or use a stronger model",
    )
