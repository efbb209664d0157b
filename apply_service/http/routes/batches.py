"""`POST /v1/batches`: many edits as lines of JSON, answered line by line as they are done."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from litestar import Request, Response, post
from litestar.di import NamedDependency
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.response.base import ASGIResponse
from litestar.response.streaming import ASGIStreamingResponse, Stream
from litestar.types import HTTPResponseBodyEvent, Receive, Send

from apply_service.apply.tenant import sent_key_of
from apply_service.http.batch_lines import BatchAnswer, BatchEdit, BatchLine
from apply_service.http.batch_run import BatchRun
from apply_service.http.errors import log_failure
from apply_service.http.json_body import decode_body
from apply_service.http.problems import ProblemError, make_problem, problem_of
from apply_service.http.routes.charged_edits import ChargedEdits
from apply_service.http.routes.edit_run import PROBLEM_RESPONSES
from apply_service.service import ApplyService

NDJSON = "application/x-ndjson"


class _Named(msgspec.Struct):
    """What is wanted of a line that is wrong otherwise."""

    id: str


@dataclass
class LinesOperation(Operation):
    """Describes a body of lines, which no single schema can."""

    def __post_init__(self) -> None:
        self.request_body = RequestBody(
            content={
                NDJSON: OpenAPIMediaType(
                    schema=Schema(
                        type=OpenAPIType.STRING,
                        description="One JSON object a line: the members of a body of `/v1/apply`,"
                        " without `stream`, and an `id` of up to 256 characters.",
                    )
                )
            },
            required=False,  # no lines are a batch too, and have no answers
        )


class LineStream(Stream):
    """A streamed answer of lines, sent while the request's body is still being read."""

    def to_asgi_response(self, app: Any, request: Any, **options: Any) -> ASGIResponse:
        """The answer as it is sent; headers of the application's own layers stay."""
        headers = {**(options.get("headers") or {}), **self.headers}
        return _Lines(iterator=cast(Any, self.iterator), headers=headers, media_type=NDJSON)


class _Lines(ASGIStreamingResponse):
    async def send_body(self, send: Send, receive: Receive) -> None:
        """Send each line when it is there; the run that makes them notices a disconnect."""
        async with aclosing(cast(AsyncGenerator[bytes], aiter(self.iterator))) as lines:
            async for line in lines:
                await send(_body_event(line, is_last=False))
        await send(_body_event(b"", is_last=True))


def _body_event(content: bytes, *, is_last: bool) -> HTTPResponseBodyEvent:
    return {"type": "http.response.body", "body": content, "more_body": not is_last}


@post(
    ["/v1/batches", "/batches"],
    tags=["Edits"],
    status_code=200,
    media_type=NDJSON,
    request_max_body_size=None,
    operation_class=LinesOperation,
    responses={status: PROBLEM_RESPONSES[status] for status in (401, 403, 429, 503)},
    summary="Merge many updates, line by line",
    description="Each line of the body is an edit with an `id`, each line of the answer has the"
    " `id`, the number of its `line`, and a `result` or a `problem`; answers come as they are"
    " ready, in any order. The edits have the priority `batch`, and each counts as a request. Lines"
    " are read only as answers are taken, so read while you send, or send no more than 16 lines at"
    " once. Where a batch is too long, or takes too long, the last answer says so.",
)
async def batches(
    request: Request[Any, Any, Any], service: NamedDependency[ApplyService]
) -> Response[BatchAnswer]:
    """Answer lines while they come; only a service that is not ready refuses all of them."""
    service.check_ready()
    max_line_bytes = request.app.request_max_body_size
    edits = _BatchEdits(service, sent_key_of(request.headers), max_line_bytes)
    limits = service.batch_limits
    run = BatchRun(
        request.receive,
        answer=edits.answer,
        answer_failure=edits.answer_failure,
        check=service.check_ready,
        max_in_flight=limits.max_in_flight,
        max_line_bytes=edits.max_line_bytes,
        max_lines=limits.max_lines,
        max_batch_s=limits.max_batch_s,
    )
    return LineStream(  # type: ignore[return-value]
        run, headers={"Cache-Control": "no-store"}, media_type=NDJSON
    )


class _BatchEdits:
    """Does what one line asks for, in the name of the batch's owner."""

    def __init__(self, service: ApplyService, sent_key: str | None, max_line_bytes: Any) -> None:
        self._service = service
        self._edits = ChargedEdits(service, sent_key)
        self.max_line_bytes = max_line_bytes if isinstance(max_line_bytes, int) else 1 << 62

    async def answer(self, line: BatchLine) -> bytes:
        """The answer to a line that can be done; raises why it cannot. Either way it is charged."""
        self._service.check_ready()
        try:
            body = self._read(line)
        except ProblemError:
            async with self._edits.charged(0, until=self._give_up_at(None)):
                raise
        give_up_at = self._give_up_at(body)
        result = await self._edits.run(body, num_bytes=line.num_bytes, until=give_up_at)
        return _encode(BatchAnswer(id=body.id, line=line.number, result=result))

    def answer_failure(self, line: BatchLine, error: Exception) -> bytes:
        """The answer to a line that cannot be done."""
        problem = problem_of(error)
        self._service.telemetry.count_problem(problem.code)
        if problem.status >= 500:
            log_failure(error)
        return _encode(BatchAnswer(id=_id_of(line), line=line.number, problem=problem))

    def _read(self, line: BatchLine) -> BatchEdit:
        """The edit of a line. Raises ProblemError."""
        if line.content is None:
            raise _line_too_large(line, self.max_line_bytes)
        return decode_body(line.content, BatchEdit)

    def _give_up_at(self, body: BatchEdit | None) -> float:
        """Until when a line waits for its turn, which its own deadline says if it can be read."""
        deadline_s = self._service.deadline_of("batch")
        if body is not None and body.deadline_s is not None:
            deadline_s = body.deadline_s
        return time.monotonic() + deadline_s


def _line_too_large(line: BatchLine, limit: int) -> ProblemError:
    return ProblemError(
        make_problem(
            413,
            code="body-too-large",
            title="The line is too large",
            detail=f"line {line.number} has {line.num_bytes} bytes, the limit is {limit}",
            value=line.num_bytes,
            limit=limit,
            remedy="send a smaller file, or raise max_body_bytes",
        )
    )


def _id_of(line: BatchLine) -> str | None:
    """The id of a line that is wrong otherwise, if it can be read."""
    if line.content is None:
        return None
    try:
        return decode_body(line.content, _Named).id
    except ProblemError:
        return None


def _encode(answer: BatchAnswer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"
