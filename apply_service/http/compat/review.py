"""Decides which results other APIs get: they have no status for a result in doubt."""

from __future__ import annotations

from apply_service.apply.outcome import Outcome
from apply_service.http.compat.schemas import ApplyNote
from apply_service.http.compat.settings import Review
from apply_service.http.problems import VerdictError
from apply_service.http.wire_conversion import choice_body, finding_body

STATUS_HEADER = "X-Apply-Status"
CONFIDENCE_HEADER = "X-Apply-Confidence"


def check_verdict(outcome: Outcome, review: Review) -> None:
    """Raise VerdictError (422) for a rejected result, and one in doubt unless that is accepted."""
    status = outcome.verdict.status
    if status == "rejected":
        raise VerdictError(
            outcome,
            code="rejected",
            title="The result failed its checks",
            remedy="send the edit again as the hints say",
        )
    if status == "needs_review" and review == "refuse":
        raise VerdictError(
            outcome,
            code="needs-review",
            title="The result is in doubt",
            remedy="send the edit again with `resolve` and the id of a choice, or as the hints"
            " say; /v1/apply returns such results, and this address does with"
            " --compat-review=accept",
        )


def note_of(outcome: Outcome) -> ApplyNote:
    """The verdict as a member of the answer."""
    return ApplyNote(
        status=outcome.verdict.status,
        confidence=outcome.confidence,
        findings=[finding_body(finding) for finding in outcome.verdict.findings],
        choices=[choice_body(choice) for choice in outcome.choices],
    )


def headers_of(outcome: Outcome) -> dict[str, str]:
    """The verdict as headers; the confidence header is left out if there is no confidence."""
    headers: dict[str, str] = {STATUS_HEADER: outcome.verdict.status}
    if outcome.confidence is not None:
        headers[CONFIDENCE_HEADER] = f"{outcome.confidence:.6g}"
    return headers
