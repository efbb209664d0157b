"""Errors on the wire: RFC 9457 problem details, with value, limit and remedy where there is one."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from apply_service.apply.errors import (
    BusyError,
    ChoiceError,
    EngineStalledError,
    FileTooLargeError,
    LimitError,
    ModelFailedError,
    NotReadyError,
    OverloadedError,
    PromptTooLongError,
    ShuttingDownError,
    TextMemoryError,
    TextWorkerError,
    TextWorkStuckError,
    UnavailableOptionError,
    UnknownChoiceError,
    UnknownModelError,
    WithdrawnError,
)
from apply_service.apply.outcome import Outcome
from apply_service.edit.read.snippet_error import (
    EmptySnippetError,
    MalformedSnippetError,
    NoMarkerError,
    NothingToKeepError,
    SnippetError,
    UnsupportedOperationError,
)
from apply_service.edit.text.text_file import (
    BinaryFileError,
    EncodingLostError,
    LoneSurrogateError,
    TextFileError,
)
from apply_service.http.request_id import current_request_id
from apply_service.http.schemas import ApplyBody, ApplyResult, ChoiceBody, FindingBody
from apply_service.http.wire_conversion import choice_body, finding_body, result_of
from apply_service.prompts.errors import PromptError, TextNotEncodableError
from apply_service.shown_text import shortened
from batching.errors import (
    DeadlineExceededError,
    EngineError,
    EngineLostError,
    EngineStoppedError,
    QueueFullError,
    RequestTooLongError,
)

# More of a detail was sent by the caller, who knows it.
MAX_DETAIL_CHARACTERS = 2000

_KINDS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (UnknownChoiceError, 409, "unknown-choice", "The choice does not belong to this edit"),
    (EmptySnippetError, 400, "empty-update", "The update is empty"),
    (NothingToKeepError, 400, "markers-without-file", "The original is empty"),
    (NoMarkerError, 422, "no-marker", "The update does not say where it belongs"),
    (MalformedSnippetError, 422, "malformed-update", "The update breaks the rules of its format"),
    (UnsupportedOperationError, 422, "unsupported-update", "The update does not edit this file"),
    (SnippetError, 422, "unreadable-update", "The update cannot be read"),
    (UnavailableOptionError, 400, "unavailable-option", "The option is not available"),
    (UnknownModelError, 404, "unknown-model", "The model is not served"),
    (FileTooLargeError, 413, "file-too-large", "The file is too large"),
    (PromptTooLongError, 413, "prompt-too-long", "The prompt is too long"),
    (ShuttingDownError, 503, "shutting_down", "The server is shutting down"),
    (EngineStalledError, 503, "engine-stalled", "The engine is stuck"),
    (TextWorkerError, 503, "text-worker-failed", "The work on the text failed"),
    (TextWorkStuckError, 503, "text-work-stuck", "Too many edits wait"),
    (TextMemoryError, 413, "too-much-memory", "The edit takes too much memory"),
    (NotReadyError, 503, "not-ready", "The model is being loaded"),
    (ModelFailedError, 503, "model-failed", "The model could not be loaded"),
    (WithdrawnError, 503, "withdrawn", "The request was cancelled"),
    (BinaryFileError, 400, "binary-file", "The file is binary"),
    (LoneSurrogateError, 400, "lone-surrogate", "The text has a lone surrogate"),
    (EncodingLostError, 422, "encoding-lost", "The file's encoding cannot hold the result"),
    (TextFileError, 400, "bad-text", "The text cannot be used"),
    (TextNotEncodableError, 422, "text-not-encodable", "The model cannot read the text"),
    (PromptError, 500, "prompt-failed", "The prompt could not be built"),
    (RequestTooLongError, 413, "prompt-too-long", "The prompt is too long"),
    (OverloadedError, 503, "overloaded", "The server is too busy"),
    (QueueFullError, 429, "queue-full", "The queue is full"),
    (EngineLostError, 503, "engine-lost", "The engine was lost"),
    (EngineStoppedError, 503, "shutting_down", "The server is shutting down"),
    (DeadlineExceededError, 504, "deadline-exceeded", "The deadline passed"),
    (EngineError, 500, "engine-failed", "The engine failed"),
)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One error as RFC 9457 has it, with members of our own behind `detail`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    value: float | None = None
    limit: float | None = None
    remedy: str | None = None
    retry_after_s: float | None = None
    finish_reason: Literal["length"] | None = None
    id: str | None = None
    request_id: str | None = None
    findings: list[FindingBody] | None = None
    choices: list[ChoiceBody] | None = None


class ProblemError(Exception):
    """An error that is a problem already."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class VerdictError(ProblemError):
    """A result withheld because of its verdict."""

    def __init__(self, outcome: Outcome, *, code: str, title: str, remedy: str) -> None:
        findings = [finding_body(finding) for finding in outcome.verdict.findings]
        severities = {finding.severity for finding in findings}
        severity = "error" if "error" in severities else "warning"
        super().__init__(
            make_problem(
                422,
                code=code,
                title=title,
                detail="; ".join(f.message for f in findings if f.severity == severity),
                remedy=remedy,
                finish_reason="length" if outcome.ending == "length" else None,
                id=outcome.request_id,
                findings=findings,
                choices=[choice_body(choice) for choice in outcome.choices] or None,
            )
        )


class RejectedError(VerdictError):
    """A result that failed its checks."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(
            outcome,
            code="rejected",
            title="The result failed its checks",
            remedy='follow the hint of each finding; checks "off" returns the text as it is',
        )


def answer_of(
    body: ApplyBody,
    outcome: Outcome,
    *,
    model: str,
    fingerprint: str | None,
    max_deadline_s: float | None = None,
) -> ApplyResult:
    """The answer to a body. Raises RejectedError for a rejected result unless checks are off."""
    if outcome.verdict.status == "rejected" and body.checks == "on":
        raise RejectedError(outcome)
    return result_of(
        body, outcome, model=model, fingerprint=fingerprint, max_deadline_s=max_deadline_s
    )


def make_problem(status: int, *, code: str, title: str, detail: str, **members: Any) -> Problem:
    """A problem of one of our codes."""
    members.setdefault("request_id", current_request_id())
    if members.get("field"):
        members["field"] = shortened(members["field"])
    return Problem(
        type=f"urn:apply-service:problem:{code}",
        title=title,
        status=status,
        detail=shortened(detail, MAX_DETAIL_CHARACTERS),
        code=code,
        **members,
    )


def problem_of(error: Exception) -> Problem:
    """Turn an error into a problem; an unforeseen one is a 500 without its message."""
    if isinstance(error, ProblemError):
        return error.problem
    members: dict[str, Any] = {}
    if isinstance(error, ChoiceError):
        members["choices"] = [choice_body(choice) for choice in error.choices]
    if isinstance(error, BusyError):
        members["retry_after_s"] = error.retry_after_s
    for kind, status, code, title in _KINDS:
        if isinstance(error, kind):
            if isinstance(error, LimitError):
                members = {"value": error.value, "limit": error.limit, "remedy": error.remedy}
            return make_problem(status, code=code, title=title, detail=str(error), **members)
    return make_problem(
        500,
        code="internal",
        title="The server made an error",
        detail=f"unexpected {type(error).__name__}; the server's log has the details",
    )
