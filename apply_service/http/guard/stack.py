"""All middleware in order: a request passes from the first line of `protect` to the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from apply_service.http.guard.body_deadline import BodyDeadline
from apply_service.http.guard.hosts import AllowedHosts, HostCheck
from apply_service.http.guard.keys.authentication import AccessRules, Authentication
from apply_service.http.guard.keys.key_ring import KeyRing
from apply_service.http.guard.limits.rate_limiting import RateLimiting
from apply_service.http.guard.limits.rate_limits import RateLimits
from apply_service.http.guard.origins import OriginCheck
from apply_service.http.server.draining import Drain, Draining
from apply_service.http.server.keep_alive import KeepAlive


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Settings of the middleware; `allowed_hosts` None allows all, times are seconds."""

    keys: KeyRing
    rules: AccessRules
    limits: RateLimits
    drain: Drain
    allowed_hosts: AllowedHosts | None = None
    allowed_origins: tuple[str, ...] = ()
    root_path: str = "/"
    receive_timeout_s: float = 30.0
    keep_alive_s: float = 10.0


def protect(app: ASGIApp, protection: Protection) -> ASGIApp:
    """Wrap the app in all middleware."""
    hosts = protection.allowed_hosts
    layers: list[Callable[[ASGIApp], ASGIApp]] = [
        lambda app: RootPath(app, protection.root_path) if protection.root_path != "/" else app,
        lambda app: HostCheck(app, hosts),
        lambda app: OriginCheck(app, protection.allowed_origins),
        lambda app: Draining(app, protection.drain),
        lambda app: Authentication(app, protection.keys, protection.rules),
        lambda app: RateLimiting(app, protection.limits),
        lambda app: BodyDeadline(app, timeout_s=protection.receive_timeout_s),
        lambda app: KeepAlive(app, interval_s=protection.keep_alive_s),
    ]
    for layer in reversed(layers):
        app = layer(app)
    return app


class RootPath:
    """Takes the prefix from the path of every request that has it."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        """`root_path` begins with a slash and does not end with one."""
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on with the path that the routes know."""
        path, root_path = scope["path"], self._root_path
        if path == root_path or path.startswith(root_path + "/"):
            scope["path"] = path[len(root_path) :] or "/"
        await self._app(scope, receive, send)


_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class ResponseHeaders:
    """Adds security headers that keep browsers from misusing an answer."""

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
