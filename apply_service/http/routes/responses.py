"""`POST /v1/responses`: OpenAI's newer API, for edits in a message and, with some models, chat."""

from functools import partial

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from apply_service.http.compat.error_shapes import OpenAIErrorBody
from apply_service.http.compat.responses.form import ResponsesForm
from apply_service.http.compat.responses.reading import responses_conversation_of
from apply_service.http.compat.responses.schemas import ResponseObject, ResponsesBody
from apply_service.http.json_body import JsonRequest
from apply_service.http.routes.compat_answer import (
    answer_conversation,
    counting_problems,
    error_responses,
)
from apply_service.service import ApplyService


class ResponsesRequest(JsonRequest):
    """A request to `/v1/responses`."""

    body_type = ResponsesBody


@post(
    ["/v1/responses", "/responses"],
    tags=["Other APIs"],
    status_code=200,
    request_class=ResponsesRequest,
    responses=error_responses(OpenAIErrorBody),
    summary="Merge an edit that stands in the input, or chat",
    description="Input with `<code>` and `<update>` is an edit; the answer is the merged file."
    " Everything else is chat, if the model can. No response is stored. docs/compatibility.md has"
    " the parameters.",
)
async def responses(
    request: ResponsesRequest,
    data: JSONBody[ResponsesBody],
    service: NamedDependency[ApplyService],
) -> Response[ResponseObject]:
    """Answer a conversation; errors come before the first byte, but for those of a chat."""
    with counting_problems(service):
        service.check_options(model=data.model, constraint=None)
        return await answer_conversation(
            request, service, responses_conversation_of(data), partial(ResponsesForm, body=data)
        )
