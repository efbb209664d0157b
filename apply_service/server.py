"""`apply-service serve`: one process, one socket, one model; drains on SIGTERM."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn

from apply_service.app import create_app
from apply_service.config import Settings
from apply_service.guard.authentication import AccessRules
from apply_service.guard.connection import ConnectionLimits, GuardedProtocol
from apply_service.guard.count_store import RedisCounts
from apply_service.guard.draining import Drain
from apply_service.guard.exposure import is_in_container, is_private, open_key_ring
from apply_service.guard.graceful_server import GracefulServer
from apply_service.guard.hosts import AllowedHosts
from apply_service.guard.key_file import KeyFile, default_key_path
from apply_service.guard.key_ring import KeyRing
from apply_service.guard.rate_limits import RateLimits, RateLimitSettings
from apply_service.guard.stack import Protection
from apply_service.listener import url_of
from apply_service.log_format import configure_logging
from apply_service.model_loading import load_model
from apply_service.pipeline import PipelineLimits
from apply_service.service import ApplyService
from batching.redis_url import parse_redis_url

_LOGGER = logging.getLogger(__name__)


def serve(settings: Settings, listener: socket.socket) -> int:
    """Serve until SIGTERM (0) or Ctrl-C (KeyboardInterrupt); 1 if the model cannot be loaded.

    Raises ServerStartError or KeyFileError if the server would not be safe where it listens.
    """
    configure_logging(
        settings.log_level,
        settings.log_format,
        shows_text=settings.log_text,
        stream=sys.stderr,
    )
    keys = open_key_ring(
        KeyFile(Path(settings.keys_file) if settings.keys_file else default_key_path()),
        is_private=is_private(listener),
        allows_anonymous=settings.allow_anonymous,
        is_in_container=is_in_container(),
    )
    service = ApplyService(
        partial(load_model, settings, report=_LOGGER.info),
        limits=PipelineLimits(
            max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
        ),
        default_deadline_s=settings.deadline_s,
        drain_s=settings.drain_s,
        cache_sharing=settings.cache_sharing,
        default_use_model=settings.use_model,
        stall_s=settings.stall_s,
    )
    drain = Drain()
    protection = _protection(settings, keys, drain, is_private=is_private(listener))
    app = create_app(service, max_body_bytes=settings.max_body_bytes, protection=protection)
    limits = ConnectionLimits(
        max_connections=settings.max_connections,
        receive_timeout_s=settings.receive_timeout_s,
        send_timeout_s=settings.send_timeout_s,
    )
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(GuardedProtocol, limits=limits)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = GracefulServer(config, service=service, drain=drain, drain_s=settings.drain_s)
    service.on_load_failed(partial(setattr, server, "should_exit", True))
    signal.signal(signal.SIGTERM, _outlive_shutdown)
    _LOGGER.info("listening on %s, loading the model %s", url_of(listener), settings.model)
    server.run(sockets=[listener])
    return 0 if service.load_error is None else 1


def _protection(settings: Settings, keys: KeyRing, drain: Drain, *, is_private: bool) -> Protection:
    shared = None
    if settings.redis_url is not None:
        address = parse_redis_url(settings.redis_url)
        shared = RedisCounts(address, timeout_s=settings.cache_timeout_s)
    hosts = None
    if settings.allowed_hosts is not None:
        hosts = AllowedHosts(_words(settings.allowed_hosts), allows_loopback=is_private)
    elif is_private:
        hosts = AllowedHosts((settings.host,), allows_loopback=True)
    return Protection(
        keys=keys,
        rules=AccessRules(
            is_private=is_private,
            allows_anonymous=settings.allow_anonymous,
            metrics_need_key=settings.metrics_need_key,
        ),
        limits=RateLimits(
            RateLimitSettings(
                requests_per_minute=settings.requests_per_minute,
                tokens_per_minute=settings.tokens_per_minute,
                max_concurrent=settings.max_concurrent,
            ),
            shared=shared,
            timeout_s=settings.cache_timeout_s,
        ),
        drain=drain,
        allowed_hosts=hosts,
        allowed_origins=_words(settings.allow_origins),
        root_path="/" + settings.root_path.strip("/"),
        receive_timeout_s=settings.receive_timeout_s,
        keep_alive_s=settings.keep_alive_s,
    )


def _words(text: str) -> tuple[str, ...]:
    """The parts between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _outlive_shutdown(_signal: int, _frame: FrameType | None) -> None:
    """The web server raises its signal again once it is done; by then there is nothing to do."""
