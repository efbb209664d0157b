"""`POST /v1/code/apply`: an edit as fields, the way of Relace and Morph."""

from functools import partial

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from apply_service.apply.outcome import Outcome
from apply_service.http.compat.answer_form import AnswerEnd
from apply_service.http.compat.chat_form import ChatForm, usage_of
from apply_service.http.compat.compacted_code import APPLY_CONTEXT_HEADER
from apply_service.http.compat.edits import code_apply_edit_of
from apply_service.http.compat.error_shapes import FlatErrorBody
from apply_service.http.compat.review import headers_of, note_of
from apply_service.http.compat.schemas import CodeApplyBody, CodeApplyResult
from apply_service.http.json_body import JsonRequest
from apply_service.http.routes.compat_answer import (
    counting_problems,
    edit_response,
    error_responses,
    settle_edit,
)
from apply_service.service import ApplyService


class CodeApplyRequest(JsonRequest):
    """A request to `/v1/code/apply`."""

    body_type = CodeApplyBody


@post(
    ["/v1/code/apply", "/code/apply"],
    tags=["Other APIs"],
    status_code=200,
    request_class=CodeApplyRequest,
    responses=error_responses(FlatErrorBody),
    summary="Merge an edit that is sent as fields",
    description="With `stream` the merged file comes in the chunks of /v1/chat/completions, the"
    " first one after the verdict; the last one has the usage.",
)
async def code_apply(
    request: CodeApplyRequest,
    data: JSONBody[CodeApplyBody],
    service: NamedDependency[ApplyService],
) -> Response[CodeApplyResult]:
    """Answer an edit; errors come before the first byte."""
    with counting_problems(service):
        service.check_options(model=data.model, constraint=None)
        context = request.headers.get(APPLY_CONTEXT_HEADER)
        edit = code_apply_edit_of(data, apply_context=context)
        outcome = await settle_edit(request, service, edit, data.resolve)
    if data.stream:
        make_form = partial(ChatForm, has_usage_at_end=True)
        return edit_response(outcome, outcome.merged, service, make_form, is_streamed=True)
    return Response(_result(outcome, service), headers=headers_of(outcome))


def _result(outcome: Outcome, service: ApplyService) -> CodeApplyResult:
    return CodeApplyResult(
        id=outcome.request_id,
        model=service.model_name,
        mergedCode=outcome.merged,
        merged_code=outcome.merged,
        usage=usage_of(AnswerEnd(reason="stop", stats=outcome.stats)),
        system_fingerprint=service.fingerprint,
        apply=note_of(outcome),
    )
