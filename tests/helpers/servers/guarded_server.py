"""A guarded HTTP server in a thread of the test: the real stack, protocol and limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import uvicorn
from litestar.types import ASGIApp

from apply_service.http.app import create_app
from apply_service.http.guard.hosts import AllowedHosts
from apply_service.http.guard.keys.authentication import AccessRules
from apply_service.http.guard.keys.key_file import KeyFile
from apply_service.http.guard.keys.key_ring import KeyRing
from apply_service.http.guard.limits.rate_limits import RateLimits, RateLimitSettings
from apply_service.http.guard.stack import Protection
from apply_service.http.server.connection import ConnectionLimits, GuardedProtocol
from apply_service.http.server.draining import Drain
from apply_service.http.server.listener import listen, url_of
from apply_service.service import ApplyService

START_LIMIT_S = 20.0
RELOAD_S = 0.05
MAX_BODY_BYTES = 100_000
NO_LIMITS = RateLimitSettings(requests_per_minute=0, tokens_per_minute=0, max_concurrent=0)
LIMITS = ConnectionLimits(max_connections=100, receive_timeout_s=20, send_timeout_s=20)
PRIVATE = AccessRules(is_private=True, allows_anonymous=False, metrics_need_key=True)


@dataclass(frozen=True)
class GuardedServer:
    """A running server, and its file of keys."""

    url: str
    keys: KeyFile
    drain: Drain

    def client(self, key: str | None = None) -> httpx.Client:
        """A client that sends a key."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)


def protection_of(folder: Path, **changes: Any) -> Protection:
    """A private server's protection, with its keys in a folder and without rate limits."""
    protection = Protection(
        keys=KeyRing(KeyFile(folder / "keys.json"), reload_s=RELOAD_S),
        rules=PRIVATE,
        limits=RateLimits(NO_LIMITS),
        drain=Drain(),
        allowed_hosts=AllowedHosts((), allows_loopback=True),
    )
    return replace(protection, **changes)


@contextmanager
def guarded(
    service: ApplyService,
    folder: Path,
    *,
    connections: ConnectionLimits = LIMITS,
    **changes: Any,
) -> Iterator[GuardedServer]:
    """Run the service behind its guard; `changes` are to the protection."""
    protection = protection_of(folder, **changes)
    app = create_app(service, max_body_bytes=MAX_BODY_BYTES, protection=protection)
    with serving_app(app, connections) as url:
        deadline = time.monotonic() + START_LIMIT_S
        while not service.is_ready:
            assert time.monotonic() < deadline, "the service did not become ready"
            time.sleep(0.01)
        yield GuardedServer(url, KeyFile(folder / "keys.json"), protection.drain)


@contextmanager
def serving_app(app: ASGIApp, connections: ConnectionLimits = LIMITS) -> Iterator[str]:
    """Run any app under the guarded protocol."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        cast(Any, app),
        http=cast(Any, partial(GuardedProtocol, limits=connections)),
        ws="none",
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(timeout=START_LIMIT_S)
        listener.close()
        assert not thread.is_alive()
