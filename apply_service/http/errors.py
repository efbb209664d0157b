"""Turns every error into an answer, in the shape that clients of its path read.

The service's own shape is `application/problem+json`; paths that stand for another API have that
API's.
"""

import logging
import math
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.enums import HttpMethod
from litestar.exceptions import HTTPException

from apply_service.apply.errors import (
    ApplyError,
    NotReadyError,
    OverloadedError,
    ShuttingDownError,
    WithdrawnError,
)
from apply_service.http.compat.error_shapes import shape_of
from apply_service.http.problems import Problem, ProblemError, make_problem, problem_of
from apply_service.observe.private_text import PRIVATE_ERROR
from apply_service.observe.request_record import current_record
from batching.errors import EngineError, EngineLostError, EngineStoppedError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1.0

_LOGGER = logging.getLogger(__name__)

# What comes of starting, of stopping, of clients that leave and of too many is no failure.
_EXPECTED = (
    NotReadyError,
    OverloadedError,
    ShuttingDownError,
    EngineLostError,
    EngineStoppedError,
    WithdrawnError,
)

_REMEDY = "GET /schema lists the addresses and their fields"
_HTTP_KINDS = {
    404: ("not-found", "There is nothing at this address"),
    405: ("method-not-allowed", "The address does not take this method"),
    413: ("body-too-large", "The body is too large"),
}


def http_problem_of(error: HTTPException) -> Problem:
    """Turn an error of the web framework into a problem."""
    code, title = _HTTP_KINDS.get(error.status_code, ("bad-request", "The request is wrong"))
    if error.status_code >= 500:
        code, title = "internal", "The server made an error"
    detail = _http_detail(error)
    remedy = _REMEDY if error.status_code < 500 else None
    return make_problem(error.status_code, code=code, title=title, detail=detail, remedy=remedy)


def _http_detail(error: HTTPException) -> str:
    """The framework's own words, with those of each wrong parameter."""
    extra = error.extra if isinstance(error.extra, list) else []
    named = [f"{item.get('key', '')}: {item['message']}" for item in extra if "message" in item]
    return "; ".join([error.detail, *named])


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Status, headers and body of an error answer."""

    status: int
    media_type: str
    headers: dict[str, str]
    body: bytes


def error_answer(path: str, problem: Problem) -> ErrorAnswer:
    """The error answer in the shape that clients of `path` read; 429 and 503 say when to retry."""
    shape = shape_of(path)
    if shape is None:
        media_type, body = MEDIA_TYPE, msgspec.json.encode(problem)
    else:
        media_type, body = "application/json", msgspec.json.encode(shape(problem))
    headers = {}
    if problem.code in ("deadline-exceeded", "unknown-choice"):
        # OpenAI's and Anthropic's clients would ask again at once, twice, in vain.
        headers["X-Should-Retry"] = "false"
    if problem.status in (429, 503):
        seconds = RETRY_AFTER_S if problem.retry_after_s is None else problem.retry_after_s
        headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="apply-service"'
    return ErrorAnswer(problem.status, media_type, headers, body)


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Exception handler of the whole app."""
    problem = http_problem_of(error) if isinstance(error, HTTPException) else problem_of(error)
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
    record = current_record()
    if record is not None:
        record.note_answer(problem.code)
    answer = error_answer(request.scope["path"], problem)
    headers = answer.headers
    if answer.status == 405:
        headers = headers | {"Allow": ", ".join(_allowed_methods(request))}
    return Response(
        answer.body, status_code=answer.status, media_type=answer.media_type, headers=headers
    )


def _allowed_methods(request: Request[Any, Any, Any]) -> list[str]:
    """The methods that the address takes."""
    allowed = []
    for method in HttpMethod:
        try:
            request.app.asgi_router.handle_routing(request.scope["path"], method)
        except HTTPException:
            continue
        allowed.append(method.value)
    return sorted(allowed)


def log_failure(error: Exception) -> None:
    """Log a server error; an unforeseen one with its traceback."""
    if isinstance(error, _EXPECTED):
        return
    if isinstance(error, ApplyError | EngineError | HTTPException | ProblemError):
        _LOGGER.error("request failed: %s", error)
    else:
        name = type(error).__name__
        _LOGGER.error("request failed: %s", name, exc_info=error, extra=PRIVATE_ERROR)
