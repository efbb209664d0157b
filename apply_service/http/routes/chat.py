"""`POST /v1/chat/completions`: OpenAI's API, for edits in a message and, with some models, chat."""

import secrets
from collections.abc import AsyncIterator
from typing import Any

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from litestar.response import Stream

from apply_service.apply.tenant import cache_salt_of
from apply_service.http.compat.answers import (
    STREAM_END,
    ChunkWriter,
    completion_of,
    sse,
    usage_of,
)
from apply_service.http.compat.chat_answer import ChatEnd
from apply_service.http.compat.chat_run import ChatRequest, ChatRun
from apply_service.http.compat.compacted_code import APPLY_CONTEXT_HEADER
from apply_service.http.compat.edits import ChatEdit, chat_edit_of, no_edit_problem
from apply_service.http.compat.error_shapes import OpenAIErrorBody, openai_error
from apply_service.http.compat.messages import messages_of, prediction_of
from apply_service.http.compat.parameters import (
    check_edit_parameters,
    check_parameters,
    max_tokens_of,
    sampling_of,
    stops_of,
)
from apply_service.http.compat.review import headers_of, note_of
from apply_service.http.compat.schemas import (
    ChatBody,
    ChatCompletion,
    ChatUsage,
    ChoiceLogprobs,
    LogprobToken,
)
from apply_service.http.errors import log_failure
from apply_service.http.json_body import JsonRequest
from apply_service.http.problems import problem_of
from apply_service.http.routes.apply import FORESEEN_ERRORS
from apply_service.http.routes.compat_answer import (
    STREAM_HEADERS,
    error_responses,
    head_of,
    settle_edit,
    stream_edit,
)
from apply_service.http.routes.disconnect import finish_for_client
from apply_service.service import ApplyService

# What OpenAI's API does where a request does not say.
_CHAT_TEMPERATURE = 1.0


class ChatBodyRequest(JsonRequest):
    """A request to `/v1/chat/completions`."""

    body_type = ChatBody


@post(
    ["/v1/chat/completions", "/chat/completions", "/v1/apply/chat/completions"],
    status_code=200,
    request_class=ChatBodyRequest,
    responses=error_responses(OpenAIErrorBody),
    summary="Merge an edit that stands in a message, or chat",
    description="A message with `<code>` and `<update>` is an edit; the answer is the merged file."
    " Everything else is chat, if the model can. docs/compatibility.md has the parameters.",
)
async def chat_completions(
    request: ChatBodyRequest, data: JSONBody[ChatBody], service: NamedDependency[ApplyService]
) -> Response[ChatCompletion]:
    """Answer a conversation; errors come before the first byte, but for those of a chat."""
    try:
        service.check_options(model=data.model, constraint=None)
        check_parameters(data)
        chat_edit = chat_edit_of(data, apply_context=request.headers.get(APPLY_CONTEXT_HEADER))
        if chat_edit is not None:
            return await _answer_edit(request, data, service, chat_edit)
        return await _answer_chat(request, data, service)
    except FORESEEN_ERRORS as error:
        service.telemetry.count_problem(problem_of(error).code)
        raise


async def _answer_edit(
    request: ChatBodyRequest, body: ChatBody, service: ApplyService, chat_edit: ChatEdit
) -> Response[Any]:
    check_edit_parameters(body)
    outcome = await settle_edit(request, service, chat_edit.edit, body.resolve)
    text = chat_edit.answer(outcome.merged)
    headers = headers_of(outcome)
    if body.stream:
        return Stream(
            stream_edit(outcome, text, _writer(body, service, outcome.request_id)),
            media_type="text/event-stream",
            headers=headers | STREAM_HEADERS,
        )
    completion = completion_of(
        head_of(outcome.request_id, service),
        text,
        finish_reason="stop",
        usage=usage_of(outcome.stats),
        apply=note_of(outcome),
    )
    return Response(completion, headers=headers)


async def _answer_chat(
    request: ChatBodyRequest, body: ChatBody, service: ApplyService
) -> Response[Any]:
    served = await finish_for_client(request.receive, service.wait_for_model())
    if served.chat is None:
        raise no_edit_problem(served.name)
    salt = cache_salt_of(request.headers.get("authorization"), service.cache_sharing)
    run = await served.chat.start(
        ChatRequest(
            messages=messages_of(body),
            prediction=prediction_of(body),
            sampling=sampling_of(body, temperature=_CHAT_TEMPERATURE, seed=secrets.randbits(63)),
            max_tokens=max_tokens_of(body),
            stops=stops_of(body),
            has_logprobs=bool(body.logprobs),
            deadline_s=service.deadline_of("interactive"),
            cache_salt=salt,
        )
    )
    if body.stream:
        writer = _writer(body, service, run.request_id)
        return Stream(
            _stream_chat(run, service, writer=writer, has_logprobs=bool(body.logprobs)),
            media_type="text/event-stream",
            headers=STREAM_HEADERS,
        )
    work = _whole_chat(run, service, has_logprobs=bool(body.logprobs))
    try:
        return Response(await finish_for_client(request.receive, work))
    finally:
        run.cancel()


def _writer(body: ChatBody, service: ApplyService, request_id: str) -> ChunkWriter:
    options = body.stream_options
    return ChunkWriter(
        head_of(request_id, service),
        has_usage_chunk=options is not None and bool(options.include_usage),
    )


async def _whole_chat(run: ChatRun, service: ApplyService, *, has_logprobs: bool) -> ChatCompletion:
    """The whole answer."""
    text: list[str] = []
    tokens: list[LogprobToken] = []
    async for item in run:
        if isinstance(item, ChatEnd):
            return completion_of(
                head_of(run.request_id, service),
                "".join(text),
                finish_reason=item.reason,
                usage=_chat_usage(item),
                logprobs=ChoiceLogprobs(content=tokens) if has_logprobs else None,
            )
        text.append(item.text)
        tokens += item.tokens
    raise AssertionError("a run ends with its end or an error")


async def _stream_chat(
    run: ChatRun, service: ApplyService, *, writer: ChunkWriter, has_logprobs: bool
) -> AsyncIterator[bytes]:
    """The chunks of an answer while it is written; leaving early gives the run up."""
    try:
        yield writer.piece("")
        async for item in run:
            if isinstance(item, ChatEnd):
                yield writer.end(item.reason)
                yield writer.usage(_chat_usage(item))
                yield STREAM_END
            else:
                logprobs = ChoiceLogprobs(content=list(item.tokens)) if has_logprobs else None
                yield writer.piece(item.text, logprobs)
    except FORESEEN_ERRORS as error:
        problem = problem_of(error)
        service.telemetry.count_problem(problem.code)
        if problem.status >= 500:
            log_failure(error)
        yield sse(openai_error(problem))
    finally:
        run.cancel()


def _chat_usage(end: ChatEnd) -> ChatUsage:
    return usage_of(end.stats, num_predicted_tokens=end.num_predicted_tokens)
