"""Refuses calls from web pages of other origins, except those that a setting names.

Without this a page could at least send edits, unread; browsers ask nobody before a plain POST.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from apply_service.http.guard.refusal import refuse
from apply_service.http.problems import make_problem
from apply_service.shown_text import shortened

_MAX_AGE_S = 600
_EXPOSED = b"retry-after, x-request-id, x-apply-status, x-apply-confidence"
_PREFLIGHT_HEADERS = [
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, x-api-key, x-apply-affinity, x-request-id",
    ),
    (b"access-control-max-age", str(_MAX_AGE_S).encode()),
    (b"content-length", b"0"),
]

_Headers = list[tuple[bytes, bytes]]


class OriginCheck:
    """Answers 403 to pages of other origins, and adds CORS headers for allowed ones."""

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...]) -> None:
        """`allowed` are origins such as `https://editor.example.com`, or `*` for all."""
        self._app = app
        self._allowed = frozenset(origin.rstrip("/") for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, answer a preflight, or pass on."""
        origins = [value.decode("latin-1") for key, value in scope["headers"] if key == b"origin"]
        # Two are nobody's, even where all are allowed.
        origin = " and ".join(origins)
        if not origins:
            await self._app(scope, receive, send)
        elif origin in self._allowed or ("*" in self._allowed and len(origins) == 1):
            await self._serve_allowed(scope, receive, send)
        elif _place_of(origin) == _header(scope, b"host"):
            await self._app(scope, receive, send)
        else:
            problem = make_problem(
                403,
                code="origin-not-allowed",
                title="Pages of this origin may not call the server",
                detail=f"the origin {shortened(origin)!r} is not this server's own",
                remedy="add it to the setting allow_origins, if its pages are yours",
            )
            await refuse(scope, send, problem)

    async def _serve_allowed(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = (_header(scope, b"origin") or "").encode("latin-1")
        allowing: _Headers = [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        is_preflight = _header(scope, b"access-control-request-method") is not None
        if scope.get("method") == "OPTIONS" and is_preflight:
            headers = [*allowing, *_PREFLIGHT_HEADERS]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return

        async def send_allowing(message: Message) -> None:
            if message["type"] == "http.response.start":
                exposing = (b"access-control-expose-headers", _EXPOSED)
                message["headers"] = [*message["headers"], *allowing, exposing]
            await send(message)

        await self._app(scope, receive, send_allowing)


def _place_of(origin: str) -> str | None:
    """Host and port of an origin, None if it has none or is no address at all."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def _header(scope: Scope, name: bytes) -> str | None:
    found = (value for key, value in scope["headers"] if key == name)
    value = next(found, None)
    return None if value is None else value.decode("latin-1")
