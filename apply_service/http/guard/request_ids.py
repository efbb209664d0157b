"""Gives each request an id, the caller's if it sent one, for answers, problems and the log."""

from __future__ import annotations

import re
import uuid

import structlog
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from apply_service.http.request_id import naming_request

HEADER = b"x-request-id"
# What may stand in a header, in a log line and in a file name without harm.
_VALID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class RequestIds:
    """Takes a valid `X-Request-Id`, or makes one, and sends it back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve with the id known to everything behind."""
        request_id = _given_id(scope) or f"req-{uuid.uuid4().hex}"

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (HEADER, request_id.encode())]
            await send(message)

        with (
            naming_request(request_id),
            structlog.contextvars.bound_contextvars(request_id=request_id),
        ):
            await self._app(scope, receive, send_with_id)


def _given_id(scope: Scope) -> str | None:
    values = [value for name, value in scope["headers"] if name == HEADER]
    is_one = len(values) == 1 and _VALID.fullmatch(values[0]) is not None
    return values[0].decode() if is_one else None
