"""Turns problems into the error shapes of other APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from apply_service.http.problems import Problem
from apply_service.http.schemas import ChoiceBody, FindingBody

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
# Where OpenAI has a code that clients look for, it is that one.
_CODES = {
    "unknown-model": "model_not_found",
    "prompt-too-long": "context_length_exceeded",
    "rate-limited": "rate_limit_exceeded",
    "unauthorized": "invalid_api_key",
}
# Errors that speak of the original and the update, which have other names at these addresses.
_OF_TEXTS = frozenset(
    {
        "empty-update",
        "file-too-large",
        "malformed-update",
        "markers-without-file",
        "needs-review",
        "no-marker",
        "prompt-too-long",
        "rejected",
        "unknown-choice",
        "unreadable-update",
        "unsupported-update",
    }
)
_MESSAGE_NAMES = "in the message, <code> is the original and <update> is the update"
_FIELD_NAMES = "`initial_code` is the original, `edit_snippet` is the update"
# OpenAI's addresses, those included that are not here: clients read the 404 as well.
_OPENAI_ENDS = ("/completions", "/responses", "/embeddings")
_OPENAI_FOLDERS = ("/v1/models/", "/v1/responses/")
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class ErrorMembers(msgspec.Struct, frozen=True, kw_only=True):
    """What an error of ours says beyond the API's own fields, where there is something to say."""

    value: float | UnsetType = UNSET
    limit: float | UnsetType = UNSET
    remedy: str | UnsetType = UNSET
    finish_reason: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    findings: list[FindingBody] | UnsetType = UNSET
    choices: list[ChoiceBody] | UnsetType = UNSET


class OpenAIError(ErrorMembers, frozen=True, kw_only=True):
    """An error as OpenAI's clients know it."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIErrorBody(msgspec.Struct, frozen=True):
    """The body of an error of /v1/chat/completions and /v1/responses."""

    error: OpenAIError


class AnthropicError(ErrorMembers, frozen=True, kw_only=True):
    """An error as Anthropic's clients know it, with our code for it."""

    type: str
    message: str
    code: str


class AnthropicErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error of /v1/messages."""

    error: AnthropicError
    request_id: str | None
    type: Literal["error"] = "error"


class FlatErrorBody(ErrorMembers, frozen=True, kw_only=True):
    """The body of an error of /v1/code/apply."""

    error: str
    code: str


Shape = Callable[[Problem], OpenAIErrorBody | FlatErrorBody | AnthropicErrorBody]


def shape_of(path: str) -> Shape | None:
    """The shape of errors at an address, None where they are problem details."""
    path = path.rstrip("/")
    if path.endswith(_OPENAI_ENDS) or any(folder in path for folder in _OPENAI_FOLDERS):
        return openai_error
    if path.endswith("/v1/messages") or "/v1/messages/" in path:
        return anthropic_error
    return flat_error if path.endswith("/code/apply") else None


def openai_error(problem: Problem) -> OpenAIErrorBody:
    """The error in OpenAI's shape."""
    kind = "server_error" if problem.status >= 500 else "invalid_request_error"
    error = OpenAIError(
        message=message_of(problem, names=_MESSAGE_NAMES),
        type=_TYPES.get(problem.status, kind),
        param="model" if problem.code == "unknown-model" else problem.field,
        code=_code_of(problem),
        **_members_of(problem),
    )
    return OpenAIErrorBody(error)


def anthropic_error(problem: Problem) -> AnthropicErrorBody:
    """The error in Anthropic's shape."""
    kind = "api_error" if problem.status >= 500 else "invalid_request_error"
    error = AnthropicError(
        type=_ANTHROPIC_TYPES.get(problem.status, kind),
        message=message_of(problem, names=_MESSAGE_NAMES),
        code=_code_of(problem),
        **_members_of(problem),
    )
    return AnthropicErrorBody(error=error, request_id=problem.request_id)


def flat_error(problem: Problem) -> FlatErrorBody:
    """The error in Relace's shape."""
    return FlatErrorBody(
        error=message_of(problem, names=_FIELD_NAMES),
        code=_code_of(problem),
        **_members_of(problem),
    )


def message_of(problem: Problem, *, names: str) -> str:
    """The whole problem in one text, for clients that show only the message.

    `names` says what original and update are called by the caller.
    """
    names = names if problem.code in _OF_TEXTS else ""
    choices = [
        f"choice {choice.id} ({choice.probability:.0%}): {choice.reason}"
        for choice in problem.choices or ()
    ]
    if not problem.findings:
        is_new = problem.remedy is not None and problem.remedy not in problem.detail
        parts = [problem.detail, (problem.remedy or "") if is_new else "", names]
        return "\n".join(["; ".join(part for part in parts if part), *choices])
    lines = [problem.title]
    for finding in problem.findings:
        place = "" if finding.line is None else f" in line {finding.line}"
        lines.append(f"{finding.severity} {finding.code}{place}: {finding.message}")
        lines.append(f"  hint: {finding.hint}")
    return "\n".join(part for part in (*lines, *choices, problem.remedy, names) if part)


def _code_of(problem: Problem) -> str:
    return _CODES.get(problem.code, problem.code.replace("-", "_"))


def _members_of(problem: Problem) -> dict[str, Any]:
    members = {name: getattr(problem, name) for name in ErrorMembers.__struct_fields__}
    return {name: value for name, value in members.items() if value is not None}
