"""Answers for replicas that died: a middleware of Ray Serve's proxies."""

from __future__ import annotations

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apply_service.http.errors import error_answer
from apply_service.http.problems import Problem


def middlewares() -> list[Middleware]:
    """What RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH names."""
    return [Middleware(LostReplicas)]


class LostReplicas:
    """Answers 503 where a replica died before its answer began; clients then ask another one.

    Serve's proxy would leave a plain 500. An answer that had begun is cut off all the same.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        has_begun = scope["type"] != "http"

        async def send_on(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        await self._app(scope, receive, send_on)
        if has_begun:
            return
        answer = error_answer(scope["path"], _LOST)
        headers = {
            "content-type": answer.media_type,
            "content-length": str(len(answer.body)),
            **answer.headers,
        }
        fields = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 503, "headers": fields})
        await send({"type": "http.response.body", "body": answer.body})


_LOST = Problem(
    type="urn:apply-service:problem:replica-lost",
    title="The replica ended",
    status=503,
    detail="the replica that had the request ended before it answered",
    code="replica-lost",
    retry_after_s=1.0,
    remedy="send the request again; another replica takes it",
)
