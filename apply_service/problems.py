"""Errors on the wire: RFC 9457 problem details, with value, limit and remedy where there is one."""

import logging
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from apply_service.edit.text_file import (
    BinaryFileError,
    EncodingLostError,
    LoneSurrogateError,
    TextFileError,
)
from apply_service.errors import (
    ApplyError,
    EmptyUpdateError,
    FileTooLargeError,
    LimitError,
    MarkersWithoutFileError,
    NotReadyError,
    PromptTooLongError,
    UnavailableOptionError,
    UnknownModelError,
    WithdrawnError,
)
from apply_service.outcome import Outcome
from apply_service.prompts.errors import PromptError, TextNotEncodableError
from apply_service.schemas import FindingBody, finding_body
from batching.errors import (
    DeadlineExceededError,
    EngineError,
    EngineStoppedError,
    QueueFullError,
    RequestTooLongError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1

_LOGGER = logging.getLogger(__name__)

_KINDS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (EmptyUpdateError, 400, "empty-update", "The update is empty"),
    (MarkersWithoutFileError, 400, "markers-without-file", "Markers without an original"),
    (UnavailableOptionError, 400, "unavailable-option", "The option is not available"),
    (UnknownModelError, 404, "unknown-model", "The model is not served"),
    (FileTooLargeError, 413, "file-too-large", "The file is too large"),
    (PromptTooLongError, 413, "prompt-too-long", "The prompt is too long"),
    (NotReadyError, 503, "not-ready", "The model is being loaded"),
    (WithdrawnError, 503, "withdrawn", "The request was cancelled"),
    (BinaryFileError, 400, "binary-file", "The file is binary"),
    (LoneSurrogateError, 400, "lone-surrogate", "The text has a lone surrogate"),
    (EncodingLostError, 422, "encoding-lost", "The file's encoding cannot hold the result"),
    (TextFileError, 400, "bad-text", "The text cannot be used"),
    (TextNotEncodableError, 422, "text-not-encodable", "The model cannot read the text"),
    (PromptError, 500, "prompt-failed", "The prompt could not be built"),
    (RequestTooLongError, 413, "prompt-too-long", "The prompt is too long"),
    (QueueFullError, 429, "queue-full", "The queue is full"),
    (EngineStoppedError, 503, "stopping", "The server is stopping"),
    (DeadlineExceededError, 504, "deadline-exceeded", "The deadline passed"),
    (EngineError, 500, "engine-failed", "The engine failed"),
)
_HTTP_KINDS = {
    404: ("not-found", "There is nothing at this address"),
    405: ("method-not-allowed", "The address does not take this method"),
    413: ("body-too-large", "The body is too large"),
}


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One error as RFC 9457 has it, with members of our own behind `detail`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    value: int | None = None
    limit: int | None = None
    remedy: str | None = None
    id: str | None = None
    findings: list[FindingBody] | None = None


class ProblemError(Exception):
    """An error that is a problem already."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class RejectedError(ProblemError):
    """A result that failed its checks; it is not returned."""

    def __init__(self, outcome: Outcome) -> None:
        findings = [finding_body(finding) for finding in outcome.verdict.findings]
        super().__init__(
            make_problem(
                422,
                code="rejected",
                title="The result failed its checks",
                detail="; ".join(f.message for f in findings if f.severity == "error"),
                remedy='see the hint of each finding; checks "off" returns the text as it is',
                id=outcome.request_id,
                findings=findings,
            )
        )


def make_problem(status: int, *, code: str, title: str, detail: str, **members: Any) -> Problem:
    """A problem of one of our codes."""
    return Problem(
        type=f"urn:apply-service:problem:{code}",
        title=title,
        status=status,
        detail=detail,
        code=code,
        **members,
    )


def problem_of(error: Exception) -> Problem:
    """The problem that an error is. What is not foreseen is a 500 without its text."""
    if isinstance(error, ProblemError):
        return error.problem
    for kind, status, code, title in _KINDS:
        if isinstance(error, kind):
            limits: dict[str, Any] = {}
            if isinstance(error, LimitError):
                limits = {"value": error.value, "limit": error.limit, "remedy": error.remedy}
            return make_problem(status, code=code, title=title, detail=str(error), **limits)
    if isinstance(error, HTTPException):
        code, title = _HTTP_KINDS.get(error.status_code, ("bad-request", "The request is wrong"))
        if error.status_code >= 500:
            code, title = "internal", "The server made an error"
        return make_problem(error.status_code, code=code, title=title, detail=_http_detail(error))
    return make_problem(
        500,
        code="internal",
        title="The server made an error",
        detail=f"unexpected {type(error).__name__}; the server's log has the details",
    )


def _http_detail(error: HTTPException) -> str:
    """The framework's own words, with those of each wrong parameter."""
    extra = error.extra if isinstance(error.extra, list) else []
    named = [f"{item.get('key', '')}: {item['message']}" for item in extra if "message" in item]
    return "; ".join([error.detail, *named])


def problem_response(problem: Problem) -> Response[Problem]:
    """The HTTP answer of a problem; busy servers say when to come back."""
    is_busy = problem.status in (429, 503)
    return Response(
        problem,
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={"Retry-After": str(RETRY_AFTER_S)} if is_busy else None,
    )


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Exception handler of the whole app."""
    problem = problem_of(error)
    if problem.status == 413 and problem.limit is None and isinstance(error, HTTPException):
        limit = request.app.request_max_body_size
        problem = msgspec.structs.replace(
            problem,
            limit=limit if isinstance(limit, int) else None,
            detail=f"the body is larger than {limit} bytes",
            remedy="send a smaller file, or raise max_body_bytes",
        )
    if problem.status >= 500:
        log_failure(error)
    return problem_response(problem)


def log_failure(error: Exception) -> None:
    """Write an error of the server's own to the log, with its traceback."""
    is_expected = isinstance(error, ApplyError | EngineError | HTTPException)
    _LOGGER.error("request failed: %s", error, exc_info=None if is_expected else error)
