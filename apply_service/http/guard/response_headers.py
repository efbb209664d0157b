"""Headers that keep browsers from making of an answer what it is not."""

from __future__ import annotations

from litestar.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class ResponseHeaders:
    """Adds them where an answer does not have its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve with the headers added."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                added = [header for header in _HEADERS if header[0] not in own]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, send_with_headers)
