"""`POST /v1/chat/completions`: OpenAI's API, for edits in a message and, with some models, chat."""

from functools import partial

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from apply_service.http.compat.chat_form import ChatForm
from apply_service.http.compat.chat_reading import chat_conversation_of
from apply_service.http.compat.error_shapes import OpenAIErrorBody
from apply_service.http.compat.schemas import ChatBody, ChatCompletion
from apply_service.http.json_body import JsonRequest
from apply_service.http.routes.compat_answer import (
    answer_conversation,
    counting_problems,
    error_responses,
)
from apply_service.service import ApplyService


class ChatBodyRequest(JsonRequest):
    """A request to `/v1/chat/completions`."""

    body_type = ChatBody


@post(
    ["/v1/chat/completions", "/chat/completions", "/v1/apply/chat/completions"],
    tags=["Other APIs"],
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
    options = data.stream_options
    has_usage_chunk = options is not None and bool(options.include_usage)
    with counting_problems(service):
        service.check_options(model=data.model, constraint=None)
        return await answer_conversation(
            request,
            service,
            chat_conversation_of(data),
            partial(ChatForm, has_usage_chunk=has_usage_chunk),
        )
