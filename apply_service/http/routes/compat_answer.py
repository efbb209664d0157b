"""Answers conversations of other APIs: edits and plain chat, each in the form of its API.

Nothing of an edit is sent before its verdict.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.openapi import ResponseSpec
from litestar.response import Stream

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.outcome import Outcome
from apply_service.apply.tenant import cache_salt_of, sent_key_of
from apply_service.http.compat.answer_form import (
    AnswerEnd,
    AnswerForm,
    AnswerHead,
    FormMaker,
    pieces_of,
)
from apply_service.http.compat.chat_run import ChatRequest, ChatRun
from apply_service.http.compat.compacted_code import APPLY_CONTEXT_HEADER, try_expand_message
from apply_service.http.compat.conversation import Conversation
from apply_service.http.compat.edits import (
    ChatEdit,
    chat_edit_of,
    morph_message_of,
    no_edit_problem,
)
from apply_service.http.compat.parameters import check_edit_parameters
from apply_service.http.compat.review import check_verdict, headers_of, note_of
from apply_service.http.compat.schemas import LogprobToken
from apply_service.http.errors import log_failure
from apply_service.http.problems import Problem, ProblemError, problem_of
from apply_service.http.request_id import current_request_id
from apply_service.http.routes.disconnect import finish_for_client
from apply_service.http.routes.edit_run import FORESEEN_ERRORS, PROBLEM_RESPONSES
from apply_service.service import ApplyService

# What the APIs do where a request does not say.
_CHAT_TEMPERATURE = 1.0
_STREAM_HEADERS = {"Cache-Control": "no-store"}

AnyRequest = Request[Any, Any, Any]


def error_responses(body_type: type) -> dict[int, ResponseSpec]:
    """The errors of `/v1/apply` for the description of an address that has them in its own form."""
    specs = {
        status: ResponseSpec(body_type, generate_examples=False, description=spec.description)
        for status, spec in PROBLEM_RESPONSES.items()
    }
    in_doubt = ResponseSpec(
        body_type,
        generate_examples=False,
        description="The result failed its checks, or is in doubt",
    )
    return specs | {422: in_doubt}


@contextmanager
def counting_problems(service: ApplyService) -> Iterator[None]:
    """Count what a request fails with."""
    try:
        yield
    except FORESEEN_ERRORS as error:
        service.telemetry.count_problem(problem_of(error).code)
        raise


async def answer_conversation(
    request: AnyRequest, service: ApplyService, conversation: Conversation, make_form: FormMaker
) -> Response[Any]:
    """Answer; errors come before the first byte, but for those of a chat that is streamed.

    Raises one of FORESEEN_ERRORS.
    """
    apply_context = request.headers.get(APPLY_CONTEXT_HEADER)
    message = morph_message_of(conversation, apply_context=apply_context)
    if message is None:
        return await _answer_chat(request, service, conversation, make_form)
    compaction = None
    if apply_context is not None:
        limit = service.max_file_bytes
        work = partial(try_expand_message, message, apply_context, max_file_bytes=limit)
        expanding = service.read_text(work, num_characters=len(message.code))
        expanded = await finish_for_client(request.receive, expanding)
        if isinstance(expanded, Problem):
            raise ProblemError(msgspec.structs.replace(expanded, request_id=current_request_id()))
        message, compaction = expanded
    chat_edit = chat_edit_of(conversation, message, compaction)
    return await _answer_edit(request, service, conversation, chat_edit, make_form)


async def settle_edit(
    request: AnyRequest, service: ApplyService, edit: EditRequest, resolve: str | None
) -> Outcome:
    """The outcome of an edit that may be used, or the choice `resolve` of it.

    Raises what an edit fails with, VerdictError too.
    """
    use_model = service.default_use_model
    edit = replace(
        edit,
        use_model=service.auto_use_model if use_model == "auto" else use_model,
        on_doubt=service.default_on_doubt,
        resolve=resolve,
        deadline_s=service.deadline_of("interactive"),
        cache_salt=cache_salt_of(sent_key_of(request.headers), service.cache_sharing),
    )
    outcome = await finish_for_client(request.receive, service.apply(edit))
    check_verdict(outcome, service.compat.review)
    return outcome


def edit_response(
    outcome: Outcome,
    text: str,
    service: ApplyService,
    make_form: FormMaker,
    *,
    is_streamed: bool,
) -> Response[Any]:
    """The answer to an edit, with the verdict as headers and in the body."""
    head = _head_of(outcome.request_id, service, outcome.stats.num_prompt_tokens)
    form, headers = make_form(head), headers_of(outcome)
    end = AnswerEnd(reason="stop", stats=outcome.stats, note=note_of(outcome))
    if is_streamed:
        return _stream(_edit_events(text, form, end), headers)
    return Response(form.whole(text, end, None), headers=headers)


async def _answer_edit(
    request: AnyRequest,
    service: ApplyService,
    conversation: Conversation,
    chat_edit: ChatEdit,
    make_form: FormMaker,
) -> Response[Any]:
    check_edit_parameters(conversation)
    outcome = await settle_edit(request, service, chat_edit.edit, conversation.resolve)
    text = chat_edit.answer(outcome.merged)
    return edit_response(outcome, text, service, make_form, is_streamed=conversation.is_streamed)


async def _answer_chat(
    request: AnyRequest, service: ApplyService, conversation: Conversation, make_form: FormMaker
) -> Response[Any]:
    served = await finish_for_client(request.receive, service.wait_for_model())
    if served.chat is None:
        raise no_edit_problem(served.name, field=conversation.messages_field)
    salt = cache_salt_of(sent_key_of(request.headers), service.cache_sharing)
    run = await served.chat.start(
        ChatRequest(
            conversation=conversation,
            sampling=conversation.sampling(
                temperature=_CHAT_TEMPERATURE, seed=secrets.randbits(63)
            ),
            deadline_s=service.deadline_of("interactive"),
            cache_salt=salt,
        )
    )
    form = make_form(_head_of(run.request_id, service, run.num_prompt_tokens))
    has_logprobs = conversation.has_logprobs
    if conversation.is_streamed:
        return _stream(_chat_events(run, service, form, has_logprobs=has_logprobs), {})
    work = _whole_chat(run, form, has_logprobs=has_logprobs)
    try:
        return Response(await finish_for_client(request.receive, work))
    finally:
        run.cancel()


def _head_of(request_id: str, service: ApplyService, num_prompt_tokens: int) -> AnswerHead:
    """The head of an answer of the served model."""
    return AnswerHead.of(
        request_id,
        model=service.model_name,
        system_fingerprint=service.fingerprint,
        num_prompt_tokens=num_prompt_tokens,
    )


def _stream(
    events: Iterator[bytes] | AsyncIterator[bytes], headers: dict[str, str]
) -> Response[Any]:
    return Stream(events, media_type="text/event-stream", headers=headers | _STREAM_HEADERS)


def _edit_events(text: str, form: AnswerForm, end: AnswerEnd) -> Iterator[bytes]:
    """The events of a merged file."""
    yield form.begin()
    for piece in pieces_of(text):
        yield form.piece(piece, None)
    yield form.end(end)


async def _whole_chat(run: ChatRun, form: AnswerForm, *, has_logprobs: bool) -> Any:
    """The whole answer."""
    text: list[str] = []
    tokens: list[LogprobToken] = []
    async for item in run:
        if isinstance(item, AnswerEnd):
            return form.whole("".join(text), item, tokens if has_logprobs else None)
        text.append(item.text)
        tokens += item.tokens
    raise AssertionError("a run ends with its end or an error")


async def _chat_events(
    run: ChatRun, service: ApplyService, form: AnswerForm, *, has_logprobs: bool
) -> AsyncIterator[bytes]:
    """The events of an answer while it is written; leaving early gives the run up."""
    try:
        yield form.begin()
        async for item in run:
            if isinstance(item, AnswerEnd):
                yield form.end(item)
            else:
                yield form.piece(item.text, item.tokens if has_logprobs else None)
    except FORESEEN_ERRORS as error:
        problem = problem_of(error)
        service.telemetry.count_problem(problem.code)
        if problem.status >= 500:
            log_failure(error)
        yield form.failure(problem)
    finally:
        run.cancel()
