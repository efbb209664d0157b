"""Drains a server before it ends: running requests finish, new ones are refused."""

from __future__ import annotations

import asyncio

from litestar.types import ASGIApp, Receive, Scope, Send

from apply_service.http.guard.paths import is_open
from apply_service.http.guard.refusal import refuse
from apply_service.http.problems import make_problem


class Drain:
    """Counts the requests being served, and says if new ones are accepted."""

    def __init__(self) -> None:
        self.is_draining = False
        self._num_active = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    @property
    def is_idle(self) -> bool:
        """True if no request is being served."""
        return self._is_idle.is_set()

    def begin(self) -> None:
        """Accept no more requests."""
        self.is_draining = True

    async def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait for all requests to end; False if that takes longer."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_idle.wait()
        except TimeoutError:
            return False
        return True

    def enter(self) -> None:
        """Count a request that has arrived."""
        self._num_active += 1
        self._is_idle.clear()

    def leave(self) -> None:
        """Count a request that is fully answered."""
        self._num_active -= 1
        if not self._num_active:
            self._is_idle.set()


class Draining:
    """Counts requests, and answers 503 to new ones once the drain has begun."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or serve and count."""
        if is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        if self._drain.is_draining:
            problem = make_problem(
                503,
                code="shutting_down",
                title="The server is shutting down",
                detail="the server finishes running requests and takes no new ones",
                remedy="send the request to another server, or again in a moment",
            )
            await refuse(scope, send, problem, closes=True)
            return
        self._drain.enter()
        try:
            await self._app(scope, receive, send)
        finally:
            self._drain.leave()
