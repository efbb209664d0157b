"""`POST /v1/apply`: one edit, answered whole or as server-sent events."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from litestar.response import Stream

from apply_service.apply.event_stream import EventStream
from apply_service.apply.outcome import Outcome
from apply_service.apply.tenant import sent_key_of
from apply_service.http.errors import log_failure
from apply_service.http.files_body import FilesBody
from apply_service.http.json_body import ApplyBodyRequest
from apply_service.http.problems import problem_of
from apply_service.http.routes.disconnect import finish_for_client
from apply_service.http.routes.edit_run import (
    FORESEEN_ERRORS,
    PROBLEM_RESPONSES,
    edit_result,
    run_body,
)
from apply_service.http.routes.files_run import answer_files
from apply_service.http.schemas import ApplyBody, ApplyResult, EditOptions
from apply_service.http.wire_conversion import event_of
from apply_service.service import ApplyService

# 27 November 2026.
_OLD_EDITS_SINCE = "@1795737600"


@post(
    ["/v1/apply", "/apply"],
    tags=["Edits"],
    status_code=200,
    request_class=ApplyBodyRequest,
    responses=PROBLEM_RESPONSES,
    summary="Merge a lazy update into a file",
    description="With `stream` the answer is a series of events: `token` with pieces of the text"
    " as it is written, framed by `region` and `region_done` for each part of the file that the"
    " model rewrites; `region_restart` discards what came for a region. Last comes exactly one"
    " `result` (the same as without `stream`) or `error`. A body with `files` has edits of several"
    " files, and the answer one for each.",
)
async def apply(
    # An `ApplyBody` or a `FilesBody`; the document of the API says so too.
    request: ApplyBodyRequest,
    data: JSONBody[Any],
    service: NamedDependency[ApplyService],
) -> Response[ApplyResult]:
    """Answer an edit, or several; all errors of the request come before the first event."""
    sent_key = sent_key_of(request.headers)
    try:
        headers = _deprecations(data)
        if isinstance(data, FilesBody):
            several = answer_files(data, service, sent_key)
            answers = await finish_for_client(request.receive, several)
            return Response(answers, headers=headers)  # type: ignore[arg-type]
        if not data.stream:
            work = _whole_answer(data, service, sent_key)
            return Response(await finish_for_client(request.receive, work), headers=headers)
        events = await _begin(request, data, service, sent_key)
    except FORESEEN_ERRORS as error:
        service.telemetry.count_problem(problem_of(error).code)
        raise
    return Stream(  # type: ignore[return-value]
        _stream(data, service, events),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", **headers},
    )


def _deprecations(options: EditOptions) -> dict[str, str]:
    """RFC 9745: positions with `text` go with the next release."""
    is_old = options.response == "edits" and options.edits_format is None
    return {"Deprecation": _OLD_EDITS_SINCE} if is_old else {}


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
