"""`POST /v1/apply`: one edit, answered whole or as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody
from litestar.response import Stream

from apply_service.apply.errors import ApplyError
from apply_service.apply.event_stream import EventStream
from apply_service.apply.events import NO_READER, EventSink
from apply_service.apply.outcome import Outcome
from apply_service.apply.tenant import cache_salt_of, sent_key_of
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFileError
from apply_service.http.errors import log_failure
from apply_service.http.json_body import ApplyBodyRequest
from apply_service.http.problems import (
    Problem,
    ProblemError,
    answer_of,
    problem_of,
)
from apply_service.http.routes.disconnect import finish_for_client
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.http.wire_conversion import edit_of, event_of
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


@post(
    ["/v1/apply", "/apply"],
    status_code=200,
    request_class=ApplyBodyRequest,
    responses=PROBLEM_RESPONSES,
    summary="Merge a lazy update into a file",
    description="With `stream` the answer is a series of events: `token` with pieces of the text"
    " as it is written, framed by `region` and `region_done` for each part of the file that the"
    " model rewrites; `region_restart` discards what came for a region. Last comes exactly one"
    " `result` (the same as without `stream`) or `error`.",
)
async def apply(
    request: ApplyBodyRequest, data: JSONBody[ApplyBody], service: NamedDependency[ApplyService]
) -> Response[ApplyResult]:
    """Answer an edit; all errors of the request come before the first event."""
    sent_key = sent_key_of(request.headers)
    try:
        if not data.stream:
            work = _whole_answer(data, service, sent_key)
            return Response(await finish_for_client(request.receive, work))
        events = await _begin(request, data, service, sent_key)
    except FORESEEN_ERRORS as error:
        service.telemetry.count_problem(problem_of(error).code)
        raise
    return Stream(  # type: ignore[return-value]
        _stream(data, service, events),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


async def run_body(
    body: ApplyBody,
    service: ApplyService,
    sent_key: str | None,
    events: EventSink = NO_READER,
) -> Outcome:
    """The outcome of an edit, in the name of its owner. Raises one of FORESEEN_ERRORS."""
    service.check_options(model=body.model, constraint=body.constraint)
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


async def _begin(
    request: ApplyBodyRequest, body: ApplyBody, service: ApplyService, sent_key: str | None
) -> EventStream:
    """An edit on its way, with something to tell. Raises one of FORESEEN_ERRORS."""
    events = EventStream()
    events.start(run_body(body, service, sent_key, events))
    try:
        await finish_for_client(request.receive, events.wait_until_begun())
    except BaseException:
        events.cancel()
        raise
    return events


async def _whole_answer(
    body: ApplyBody, service: ApplyService, sent_key: str | None
) -> ApplyResult:
    """The answer to a body, without the events before it."""
    return await edit_result(body, service, await run_body(body, service, sent_key))


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


async def _stream(
    body: ApplyBody, service: ApplyService, events: EventStream
) -> AsyncIterator[bytes]:
    """Server-sent events; leaving early, as a disconnect does, gives the run up."""
    try:
        async for item in events:
            if isinstance(item, Outcome):
                yield _event("result", await edit_result(body, service, item))
            else:
                yield _event(*event_of(item))
    except FORESEEN_ERRORS as error:
        problem = problem_of(error)
        service.telemetry.count_problem(problem.code)
        if problem.status >= 500:
            log_failure(error)
        yield _event("error", problem)
    finally:
        events.cancel()


def _event(name: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))
