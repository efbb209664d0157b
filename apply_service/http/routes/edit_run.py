"""Runs one edit of the native API; what it may fail with, and how that is described."""

import asyncio
from dataclasses import replace

from litestar.openapi import ResponseSpec

from apply_service.apply.errors import ApplyError
from apply_service.apply.events import NO_READER, EventSink
from apply_service.apply.outcome import Outcome
from apply_service.apply.tenant import cache_salt_of
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFileError
from apply_service.http.problems import Problem, ProblemError, answer_of
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.http.wire_conversion import edit_of
from apply_service.prompts.errors import PromptError
from apply_service.service import ApplyService
from batching.errors import EngineError

# What an edit may fail with; anything else is a mistake of ours and a plain 500.
FORESEEN_ERRORS = (ApplyError, SnippetError, TextFileError, PromptError, EngineError, ProblemError)

PROBLEM_RESPONSES = {
    status: ResponseSpec(Problem, description=description, media_type="application/problem+json")
    for status, description in {
        400: "The body is wrong; `field` or `detail` says where",
        401: "An API key is needed, or the key that was sent is not valid",
        403: "The API key does not have the scope",
        404: "The model is not served",
        409: "`resolve` names no choice of this edit; see `choices`",
        408: "The body did not come in time",
        413: "The file, the prompt or the body is over its limit",
        422: "The result failed its checks; see `findings`",
        429: "The queue is full, or a limit of the API key is used up; come back after"
        " `Retry-After` seconds",
        503: "The server is starting or stopping, or is too busy to meet the deadline; come back"
        " after `Retry-After` seconds",
        504: "The deadline passed",
    }.items()
}


async def run_body(
    body: ApplyBody,
    service: ApplyService,
    sent_key: str | None,
    events: EventSink = NO_READER,
) -> Outcome:
    """The outcome of an edit, in the name of its owner. Raises one of FORESEEN_ERRORS."""
    service.check_options(
        model=body.model, constraint=body.constraint, acceptance=body.sampling.acceptance
    )
    edit = await asyncio.to_thread(
        edit_of,
        body,
        default_deadline_s=service.deadline_of(body.priority),
        max_deadline_s=service.max_deadline_of(body.priority),
        default_use_model=service.default_use_model,
        auto_use_model=service.auto_use_model,
        default_on_doubt=service.default_on_doubt,
    )
    edit = replace(edit, cache_salt=cache_salt_of(sent_key, service.cache_sharing))
    return await service.apply(edit, events)


async def edit_result(body: ApplyBody, service: ApplyService, outcome: Outcome) -> ApplyResult:
    """The answer to a body; may compare large texts. Raises RejectedError."""
    return await asyncio.to_thread(
        answer_of,
        body,
        outcome,
        model=service.model_name,
        fingerprint=service.fingerprint,
        max_deadline_s=service.max_deadline_of(body.priority),
    )
