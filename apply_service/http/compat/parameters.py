"""Checks parameters of other APIs: unsupported ones are refused unless they change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from apply_service.http.compat.conversation import Conversation
from apply_service.http.problems import ProblemError, make_problem

MAX_STOPS = 16


def check_neutral(values: Mapping[str, Any], neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise ProblemError (400) for a parameter that would change the answer and cannot.

    `neutral` has the values of each that mean what is done anyway, beside null.
    """
    for name, allowed_values in neutral.items():
        value = values[name]
        if value is not None and value not in allowed_values:
            allowed = " or ".join(repr(choice) for choice in allowed_values)
            remedy = f"leave it out, or send {allowed}" if allowed else "leave it out"
            refuse_parameter(
                name, f"`{name}` is {_short(value)}; this server does not support it", remedy
            )


def check_stops(stops: Sequence[str], *, field: str) -> None:
    """Raise ProblemError (400) for texts that no answer can end at."""
    if len(stops) > MAX_STOPS:
        refuse_parameter(
            field, f"`{field}` has {len(stops)} texts, the limit is {MAX_STOPS}", "send fewer"
        )
    if "" in stops:
        refuse_parameter(
            field,
            f"`{field}` has an empty text, and every answer would end at once",
            "leave it out",
        )


def check_edit_parameters(conversation: Conversation) -> None:
    """Raise ProblemError (400) for parameters that only plain chat supports."""
    if conversation.has_logprobs:
        field = conversation.logprobs_field
        refuse_parameter(
            field,
            f"`{field}` asks for log-probabilities, but most tokens of a merged file are copied"
            " and have none",
            "leave it out; the key `apply` of the answer has the model's confidence, and"
            ' /v1/apply with `"include": ["decisions"]` every decision with its probability',
        )


def refuse_parameter(name: str, detail: str, remedy: str) -> NoReturn:
    """Raise ProblemError (400) for one parameter."""
    raise ProblemError(
        make_problem(
            400,
            code="unsupported-parameter",
            title="A parameter is not supported",
            detail=detail,
            field=name,
            remedy=remedy,
        )
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
