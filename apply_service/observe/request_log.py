"""ASGI middleware around everything: one line of log, figures and a trace of each HTTP request."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPMethod
from typing import TYPE_CHECKING, Any

from structlog.contextvars import bound_contextvars

from apply_service.observe.request_record import Attributes, RequestRecord, recording
from apply_service.observe.telemetry import Telemetry
from apply_service.observe.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span

# The types of ASGI 3, whichever framework is behind them.
Scope = Any  # a mapping
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
ASGIApp = Callable[[Any, Any, Any], Awaitable[None]]

_LOGGER = logging.getLogger(__name__)

UNKNOWN_ROUTE = "unknown"
# Whatever a caller makes up as a method is one figure and not one of each.
OTHER_METHOD = "other"
_METHODS = frozenset(HTTPMethod)
# Asked every few seconds by machines, which is of interest only to whoever looks for it.
_QUIET_ROUTES = ("/health/", "/metrics")


class RequestLog:
    """Counts, logs and traces requests; nothing of users' text comes into either."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry, tracing: Tracing | None = None) -> None:
        self._app = app
        self._telemetry = telemetry
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and say at its end what it came to."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        watch = _Watch(time.monotonic(), RequestRecord())

        async def note_disconnect() -> Message:
            message: Message = await receive()
            watch.is_client_gone |= message["type"] == "http.disconnect"
            return message

        async def note_status(message: Message) -> None:
            # An answer that begins when the client has gone goes to nobody.
            if message["type"] == "http.response.start" and not watch.is_client_gone:
                watch.status = message["status"]
            await send(message)

        with ExitStack() as stack:
            stack.enter_context(recording(watch.record))
            if self._tracing is not None and not scope["path"].startswith(_QUIET_ROUTES):
                stack.enter_context(self._traced(self._tracing, scope, watch))
            try:
                await self._app(scope, note_disconnect, note_status)
            finally:
                self._tell(scope, watch)

    def _tell(self, scope: Scope, watch: _Watch) -> None:
        """The figures, the line and the end of the trace."""
        seconds = time.monotonic() - watch.started
        method = scope["method"] if scope["method"] in _METHODS else OTHER_METHOD
        route = scope.get("path_template") or UNKNOWN_ROUTE
        self._telemetry.count_http(method, route, watch.status, seconds=seconds)
        level = logging.DEBUG if route.startswith(_QUIET_ROUTES) else logging.INFO
        figures = _fields_of(watch.record)
        fields: dict[str, Any] = {"method": method, "route": route, "status": watch.status}
        fields |= {"seconds": round(seconds, 6), **figures}
        _LOGGER.log(level, "request", extra=fields)
        if watch.span is None or self._tracing is None:
            return
        attributes: Attributes = {"http.request.method": method, "http.route": route}
        if watch.status is not None:
            attributes["http.response.status_code"] = watch.status
        attributes |= {f"apply.{name}": _plain(value) for name, value in figures.items()}
        self._tracing.end(watch.span, watch.record, attributes)

    def _traced(self, tracing: Tracing, scope: Scope, watch: _Watch) -> Any:
        """Begin the request's span; the names of both are in the log until it ends."""
        span = tracing.begin(scope)
        watch.span = span
        watch.record.keeps_stages = span.is_recording()
        names = span.get_span_context()
        return bound_contextvars(trace_id=f"{names.trace_id:032x}", span_id=f"{names.span_id:016x}")


@dataclass(slots=True)
class _Watch:
    """A request while it is served; `status` is None until there is an answer for its client."""

    started: float
    record: RequestRecord
    status: int | None = None
    is_client_gone: bool = False
    span: Span | None = None


def _fields_of(record: RequestRecord) -> dict[str, Any]:
    """What a record says, as fields of a line: one edit by its name, several by their number."""
    fields: dict[str, Any] = {}
    if record.num_edits == 1:
        fields["id"] = record.edit_id
    elif record.num_edits:
        fields["num_edits"] = record.num_edits
    for name, counts in (("verdict", record.verdicts), ("problem", record.problems)):
        if counts:
            fields[name] = next(iter(counts)) if counts.total() == 1 else dict(counts)
    if record.num_edits or record.num_prompt_tokens:
        fields["prompt_tokens"] = record.num_prompt_tokens
        fields["output_tokens"] = record.num_output_tokens
    return fields


def _plain(value: Any) -> str | int | float:
    """A field as traces can hold it."""
    return value if isinstance(value, str | int | float) else str(value)
