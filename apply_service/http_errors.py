"""Turns every error of a handler into an `application/problem+json` answer."""

import logging
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from apply_service.errors import ApplyError, NotReadyError
from apply_service.private_text import PRIVATE_ERROR
from apply_service.problems import Problem, make_problem, problem_of
from batching.errors import EngineError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1

_LOGGER = logging.getLogger(__name__)

_HTTP_KINDS = {
    404: ("not-found", "There is nothing at this address"),
    405: ("method-not-allowed", "The address does not take this method"),
    413: ("body-too-large", "The body is too large"),
}


def http_problem_of(error: HTTPException) -> Problem:
    """The problem that an error of the web framework is."""
    code, title = _HTTP_KINDS.get(error.status_code, ("bad-request", "The request is wrong"))
    if error.status_code >= 500:
        code, title = "internal", "The server made an error"
    return make_problem(error.status_code, code=code, title=title, detail=_http_detail(error))


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
    problem = http_problem_of(error) if isinstance(error, HTTPException) else problem_of(error)
    if problem.status == 413 and problem.limit is None and isinstance(error, HTTPException):
        limit = request.app.request_max_body_size
        problem = msgspec.structs.replace(
            problem,
            limit=limit if isinstance(limit, int) else None,
            detail=f"the body is larger than {limit} bytes",
            remedy="send a smaller file, or raise max_body_bytes",
        )
    # Whoever polls for readiness is told so often enough; it is no failure of the server.
    if problem.status >= 500 and not isinstance(error, NotReadyError):
        log_failure(error)
    return problem_response(problem)


def log_failure(error: Exception) -> None:
    """Write an error of the server's own to the log, an unforeseen one with its traceback."""
    if isinstance(error, ApplyError | EngineError | HTTPException):
        _LOGGER.error("request failed: %s", error)
    else:
        name = type(error).__name__
        _LOGGER.error("request failed: %s", name, exc_info=error, extra=PRIVATE_ERROR)
