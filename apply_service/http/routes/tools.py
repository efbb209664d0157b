"""`GET /v1/tools/edit_file`: the tool description that teaches a model to write good updates."""

from typing import Annotated

from litestar import get
from litestar.params import QueryParameter

from apply_service.http.edit_tool import AnthropicTool, McpTool, OpenAITool, ToolForm, tool_in

_FORM = QueryParameter(description="The API whose form the tool is wanted in.")


@get(
    "/v1/tools/edit_file",
    summary="The description of the tool `edit_file`, for a model that writes updates",
    description="Goes into `tools` of a chat request as it is. A program that carries the tool out"
    " sends `code_edit` as `update` and `instructions` as `instruction` to `/v1/apply`.",
)
async def describe_edit_file(
    form: Annotated[ToolForm, _FORM] = "openai",
) -> OpenAITool | AnthropicTool | McpTool:
    """The same text in every form."""
    return tool_in(form)
