"""`POST /v1/messages`: Anthropic's API, for edits in a message and, with some models, chat."""

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from apply_service.http.compat.anthropic.form import AnthropicForm
from apply_service.http.compat.anthropic.reading import messages_conversation_of
from apply_service.http.compat.anthropic.schemas import AnthropicMessage, MessagesBody
from apply_service.http.compat.error_shapes import AnthropicErrorBody
from apply_service.http.json_body import JsonRequest
from apply_service.http.routes.compat_answer import (
    answer_conversation,
    counting_problems,
    error_responses,
)
from apply_service.service import ApplyService


class MessagesRequest(JsonRequest):
    """A request to `/v1/messages`."""

    body_type = MessagesBody


@post(
    "/v1/messages",
    tags=["Other APIs"],
    status_code=200,
    request_class=MessagesRequest,
    responses=error_responses(AnthropicErrorBody),
    summary="Merge an edit that stands in a message, or chat, in Anthropic's form",
    description="A message with `<code>` and `<update>` is an edit; the answer is the merged file."
    " Everything else is chat, if the model can. docs/compatibility.md has the parameters.",
)
async def messages(
    request: MessagesRequest,
    data: JSONBody[MessagesBody],
    service: NamedDependency[ApplyService],
) -> Response[AnthropicMessage]:
    """Answer a conversation; errors come before the first byte, but for those of a chat."""
    with counting_problems(service):
        service.check_options(model=data.model, constraint=None)
        return await answer_conversation(
            request, service, messages_conversation_of(data), AnthropicForm
        )
