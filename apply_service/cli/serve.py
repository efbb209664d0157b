"""`apply-service serve`: one process, one socket, one model; drains on SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from litestar import Litestar

from apply_service.config import Settings
from apply_service.http.app import create_app
from apply_service.http.guard.exposure import is_private
from apply_service.http.guard.from_settings import protection_of
from apply_service.http.server.connection import ConnectionLimits, GuardedProtocol
from apply_service.http.server.draining import Drain
from apply_service.http.server.graceful_server import GracefulServer
from apply_service.http.server.listener import make_room_for, url_of
from apply_service.models.found_model import try_find_model
from apply_service.observe.free_memory import keep_giving_back, keep_heaps_small
from apply_service.observe.log_format import configure_logging
from apply_service.observe.log_stream import LogStream
from apply_service.observe.tracing import open_tracing
from apply_service.service_of_settings import service_of

_LOGGER = logging.getLogger(__name__)

# How long a thread that computes may keep the event loop waiting; Python's own 5 ms add up over
# the several turns that one answer takes.
_SWITCH_INTERVAL_S = 0.001
# Longer than clients and proxies keep a connection that they do not use (5 s in httpx, 60 s in
# nginx): whoever closes it first, a request must not be on its way into it.
_IDLE_S = 75


def serve(
    settings: Settings, listener: socket.socket, *, announce: Callable[[], None] | None = None
) -> int:
    """Serve until SIGTERM (0) or Ctrl-C (KeyboardInterrupt); 1 if there is no such model.

    `announce` is called once it is known that the server may listen where it does. Raises
    ServerStartError or KeyFileError if the server would not be safe where it listens, and
    ModelStoreError or PromptError if it is known at once that the model cannot be served.
    """
    log = LogStream.replace_stderr()
    configure_logging(settings.log_level, settings.log_format, shows_text=settings.log_text)
    make_room_for(settings.max_connections)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    drain = Drain()
    protection = protection_of(settings, drain, is_private=is_private(listener))
    if announce is not None:
        announce()
    tracing = open_tracing(settings.otlp_endpoint, os.environ)
    service = service_of(settings, try_find_model(settings))
    if log is not None:
        service.telemetry.watch_log(log)
    app = create_app(
        service, max_body_bytes=settings.max_body_bytes, protection=protection, tracing=tracing
    )
    server = GracefulServer(
        _web_config(settings, app), service=service, drain=drain, drain_s=settings.drain_s
    )
    service.on_model_missing(partial(setattr, server, "should_exit", True))
    signal.signal(signal.SIGTERM, _outlive_shutdown)
    keep_heaps_small()
    keep_giving_back()
    _LOGGER.info("listening on %s, loading the model %s", url_of(listener), settings.model)
    try:
        server.run(sockets=[listener])
    finally:
        if tracing is not None:
            tracing.close()
    return 1 if service.is_model_missing else 0


def _web_config(settings: Settings, app: Litestar) -> uvicorn.Config:
    limits = ConnectionLimits(
        max_connections=settings.max_connections,
        receive_timeout_s=settings.receive_timeout_s,
        send_timeout_s=settings.send_timeout_s,
    )
    return uvicorn.Config(
        cast(Any, app),
        loop="asyncio",  # also where another one is installed, which behaves otherwise
        http=cast(Any, partial(GuardedProtocol, limits=limits)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=_IDLE_S,
    )


def _outlive_shutdown(_signal: int, _frame: FrameType | None) -> None:
    """The web server raises its signal again once it is done; by then there is nothing to do."""
