"""The OpenAPI document: the routes as Litestar knows them, types and errors as they are.

Litestar's schemas lose the limits of optional fields and that unknown fields are refused; msgspec,
which decodes the bodies, writes both. What each route may answer besides, errors in the shape of
its path and events instead of one body, is said here for all of them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin

from apply_service.http.batch_lines import BatchAnswer, BatchEdit
from apply_service.http.compat.anthropic.schemas import (
    AnthropicMessage,
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageDelta,
    MessagesBody,
    MessageStart,
    MessageStop,
)
from apply_service.http.compat.error_shapes import (
    AnthropicErrorBody,
    FlatErrorBody,
    OpenAIErrorBody,
    anthropic_error,
    flat_error,
    openai_error,
    shape_of,
)
from apply_service.http.compat.responses.schemas import (
    ItemEvent,
    PartEvent,
    ResponseEvent,
    ResponseObject,
    ResponsesBody,
    TextDeltaEvent,
    TextDoneEvent,
)
from apply_service.http.compat.schemas import (
    ChatBody,
    ChatCompletion,
    CodeApplyBody,
    CodeApplyResult,
)
from apply_service.http.edit_tool import AnthropicTool, McpTool, OpenAITool
from apply_service.http.errors import MEDIA_TYPE
from apply_service.http.files_body import FilesBody, FilesResult
from apply_service.http.problems import Problem
from apply_service.http.routes.apply import apply
from apply_service.http.schemas import (
    ApplyBody,
    ApplyResult,
    Hashlines,
    HashlinesBody,
    Health,
    ModelCard,
    ModelList,
    Readiness,
    RegionEndEvent,
    RegionEvent,
    TokenEvent,
)

Document = dict[str, Any]

# Everything else that goes over the wire is a part of one of these.
_TYPES: tuple[type[msgspec.Struct], ...] = (
    *(ApplyBody, ApplyResult, FilesBody, FilesResult, RegionEvent, TokenEvent, RegionEndEvent),
    *(BatchEdit, BatchAnswer, ChatBody, ChatCompletion, CodeApplyBody, CodeApplyResult),
    *(ResponsesBody, ResponseObject, ResponseEvent, ItemEvent, PartEvent, TextDeltaEvent),
    *(TextDoneEvent, MessagesBody, AnthropicMessage, MessageStart, BlockStart, BlockDelta),
    *(BlockStop, MessageDelta, MessageStop, HashlinesBody, Hashlines),
    *(ModelCard, ModelList, OpenAITool, AnthropicTool, McpTool, Health, Readiness),
    *(Problem, OpenAIErrorBody, FlatErrorBody, AnthropicErrorBody),
)
_ERROR_BODIES: dict[Any, type[msgspec.Struct]] = {
    None: Problem,
    openai_error: OpenAIErrorBody,
    anthropic_error: AnthropicErrorBody,
    flat_error: FlatErrorBody,
}
_REFERENCE = "#/components/schemas/{name}"
_KEY: Document = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key. All addresses but /health need it once the server has keys.",
}
_STREAMING_ENDS = ("/apply", "/chat/completions", "/responses", "/messages")
_EVENTS: Document = {
    "schema": {"type": "string", "description": "Server-sent events, if `stream` is true."}
}


class OpenApiPlugin(JsonRenderPlugin):
    """Serves the completed document."""

    def __init__(self) -> None:
        super().__init__(path=["/", "/openapi.json"])
        self._document: Document | None = None

    def render(self, request: Request[Any, Any, Any], openapi_schema: Document) -> bytes:
        """The document as JSON, completed once."""
        if self._document is None:
            self._document = complete(openapi_schema)
        return self.render_json(request, self._document)


def complete(document: Document) -> Document:
    """A copy of Litestar's document with our own types, errors and streams."""
    # Litestar leaves defaults of fields as the objects that they are.
    document = msgspec.json.decode(msgspec.json.encode(document))
    _, types = msgspec.json.schema_components(_TYPES, ref_template=_REFERENCE)
    document["components"]["schemas"].update(types)
    document["components"]["securitySchemes"] = {"key": _KEY}
    document["security"] = [{"key": []}, {}]
    document["paths"] = dict(sorted(document["paths"].items()))
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete_operation(path, operation)
    return document


def _complete_operation(path: str, operation: Document) -> None:
    responses = operation["responses"]
    for status in [status for status in responses if _is_foreign_error(responses[status])]:
        del responses[status]
    responses["default"] = _error_of(path)
    if path in apply.paths:
        _name_both_bodies(operation)
    if "requestBody" in operation and path.endswith(_STREAMING_ENDS):
        responses["200"]["content"]["text/event-stream"] = _EVENTS


def _name_both_bodies(operation: Document) -> None:
    """Say that the address takes one edit or several; a handler's parameter has one type."""
    sent = operation["requestBody"]["content"]["application/json"]
    received = operation["responses"]["200"]["content"]["application/json"]
    for media, kinds in ((sent, (ApplyBody, FilesBody)), (received, (ApplyResult, FilesResult))):
        media["schema"] = {"oneOf": [{"$ref": _REFERENCE.format(name=k.__name__)} for k in kinds]}


def _is_foreign_error(response: Document) -> bool:
    """True if a response is one that Litestar adds on its own and that our handler replaces."""
    schemas = [media["schema"] for media in response.get("content", {}).values()]
    return any("status_code" in schema.get("properties", {}) for schema in schemas)


def _error_of(path: str) -> Document:
    """Every other answer at a path is an error, in its one shape."""
    shape = shape_of(path)
    media_type = MEDIA_TYPE if shape is None else "application/json"
    reference = {"$ref": _REFERENCE.format(name=_ERROR_BODIES[shape].__name__)}
    return {
        "description": "An error; `Retry-After` says when to come back after 429 and 503",
        "content": {media_type: {"schema": reference}},
    }
