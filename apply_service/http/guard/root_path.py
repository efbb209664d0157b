"""Serves below a path, whether or not the proxy in front has taken that path away."""

from __future__ import annotations

from litestar.types import ASGIApp, Receive, Scope, Send


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
