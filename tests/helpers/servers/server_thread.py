"""A real HTTP server in a thread of the test, on a free loopback port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from apply_service.http.app import create_app
from apply_service.http.server.listener import listen, url_of
from apply_service.service import ApplyService

START_LIMIT_S = 20.0


@contextmanager
def serving(service: ApplyService) -> Iterator[str]:
    """Serve and give the address; the server has drained and stopped at the end."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        create_app(service, max_body_bytes=100_000),
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while not service.is_ready:
            assert time.monotonic() < deadline, "the service did not become ready"
            time.sleep(0.01)
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(timeout=START_LIMIT_S)
        listener.close()
        assert not thread.is_alive()
