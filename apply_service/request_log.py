"""ASGI middleware around everything: one line of log and the figures of each HTTP request."""

from __future__ import annotations

import logging
import time
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from apply_service.request_record import RequestRecord, recording
from apply_service.telemetry import Telemetry

_LOGGER = logging.getLogger(__name__)

UNKNOWN_ROUTE = "unknown"
# Asked every few seconds by machines, which is of interest only to whoever looks for it.
_QUIET_ROUTES = ("/health/", "/metrics")


class RequestLog:
    """Counts and logs requests; who looks into a log finds no text of users in it."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and say at its end what it came to."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status: int | None = None

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        record = RequestRecord()
        with recording(record):
            try:
                await self._app(scope, receive, note_status)
            finally:
                seconds = time.monotonic() - started
                route = scope.get("path_template") or UNKNOWN_ROUTE
                self._telemetry.count_http(scope["method"], route, status, seconds=seconds)
                level = logging.DEBUG if route.startswith(_QUIET_ROUTES) else logging.INFO
                fields: dict[str, Any] = {"method": scope["method"], "route": route}
                fields |= {"status": status, "seconds": round(seconds, 6)}
                _LOGGER.log(level, "request", extra={**fields, **_fields_of(record)})


def _fields_of(record: RequestRecord) -> dict[str, Any]:
    """What a record says, as fields of a line: one edit by its name, several by their number."""
    fields: dict[str, Any] = {}
    if len(record.edit_ids) == 1:
        fields["id"] = record.edit_ids[0]
    elif record.edit_ids:
        fields["num_edits"] = len(record.edit_ids)
    for name, counts in (("verdict", record.verdicts), ("problem", record.problems)):
        if counts:
            fields[name] = next(iter(counts)) if counts.total() == 1 else dict(counts)
    if record.edit_ids:
        fields["prompt_tokens"] = record.num_prompt_tokens
        fields["output_tokens"] = record.num_output_tokens
    return fields
