"""Answers to edits in other APIs: nothing is sent before the verdict."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from litestar import Request
from litestar.openapi import ResponseSpec

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.outcome import Outcome
from apply_service.apply.tenant import cache_salt_of
from apply_service.http.compat.answers import (
    STREAM_END,
    AnswerHead,
    ChunkWriter,
    pieces_of,
    usage_of,
)
from apply_service.http.compat.review import check_verdict, note_of
from apply_service.http.compat.schemas import ChatUsage
from apply_service.http.routes.apply import PROBLEM_RESPONSES
from apply_service.http.routes.disconnect import finish_for_client
from apply_service.service import ApplyService

STREAM_HEADERS = {"Cache-Control": "no-store"}


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


async def settle_edit(
    request: Request[Any, Any, Any], service: ApplyService, edit: EditRequest, resolve: str | None
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
        cache_salt=cache_salt_of(request.headers.get("authorization"), service.cache_sharing),
    )
    outcome = await finish_for_client(request.receive, service.apply(edit))
    check_verdict(outcome, service.compat.review)
    return outcome


def head_of(request_id: str, service: ApplyService) -> AnswerHead:
    """The head of an answer of the served model."""
    return AnswerHead.of(
        request_id, model=service.model_name, system_fingerprint=service.fingerprint
    )


def stream_edit(
    outcome: Outcome, text: str, writer: ChunkWriter, *, end_usage: ChatUsage | None = None
) -> Iterator[bytes]:
    """The chunks of a merged file; the last one has the verdict and, if given, the usage."""
    for piece in pieces_of(text):
        yield writer.piece(piece)
    members = {} if end_usage is None else {"usage": end_usage}
    yield writer.end("stop", apply=note_of(outcome), **members)
    yield writer.usage(usage_of(outcome.stats))
    yield STREAM_END
