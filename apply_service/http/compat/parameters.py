"""Checks OpenAI's parameters: unsupported ones are refused unless they change nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from apply_service.apply.edit_request import SamplingOptions
from apply_service.http.compat.schemas import ChatBody
from apply_service.http.problems import ProblemError, make_problem

MAX_STOPS = 16
_MAX_SEED = (1 << 63) - 1

# Values of unsupported parameters that mean what is done anyway, beside null.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
}


def check_parameters(body: ChatBody) -> None:
    """Raise ProblemError (400) for a parameter that would change the answer and cannot."""
    for name, neutral in _NEUTRAL.items():
        value = getattr(body, name)
        if value is not None and value not in neutral:
            allowed = " or ".join(repr(choice) for choice in neutral)
            remedy = f"leave it out, or send {allowed}" if neutral else "leave it out"
            _refuse(name, f"`{name}` is {_short(value)}; this server does not support it", remedy)
    stops = stops_of(body)
    if len(stops) > MAX_STOPS:
        _refuse("stop", f"`stop` has {len(stops)} texts, the limit is {MAX_STOPS}", "send fewer")
    if "" in stops:
        _refuse(
            "stop", "`stop` has an empty text, and every answer would end at once", "leave it out"
        )


def check_edit_parameters(body: ChatBody) -> None:
    """Raise ProblemError (400) for parameters that only plain chat supports."""
    if body.logprobs:
        _refuse(
            "logprobs",
            "`logprobs` is true, but most tokens of a merged file are copied and have no"
            " probability",
            "leave it out; the key `apply` of the answer has the model's confidence, and"
            ' /v1/apply with `"include": ["decisions"]` every decision with its probability',
        )


def stops_of(body: ChatBody) -> tuple[str, ...]:
    """The texts at which a chat answer ends."""
    stop = body.stop if body.stop is not None else []
    return (stop,) if isinstance(stop, str) else tuple(stop)


def max_tokens_of(body: ChatBody) -> int | None:
    """The most tokens that the model may write: the smaller one if both names are used."""
    limits = (body.max_tokens, body.max_completion_tokens)
    return min([limit for limit in limits if limit is not None], default=None)


def sampling_of(body: ChatBody, *, temperature: float, seed: int) -> SamplingOptions:
    """The sampling of an answer; the arguments are defaults for the body."""
    if body.temperature is not None:
        temperature = body.temperature
    top_p = 1.0 if body.top_p is None else body.top_p
    if top_p == 0:  # nothing is left but the likeliest token
        temperature, top_p = 0.0, 1.0
    return SamplingOptions(
        temperature=temperature,
        top_p=top_p,
        top_k=max(body.top_k or 0, 0),
        seed=seed if body.seed is None else body.seed & _MAX_SEED,
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _refuse(name: str, detail: str, remedy: str) -> NoReturn:
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
