"""`apply-service serve`: one process, one socket, one model; drains on SIGTERM."""

from __future__ import annotations

import logging
import math
import signal
import socket
import sys
from functools import partial
from types import FrameType

import uvicorn

from apply_service.app import create_app
from apply_service.config import Settings
from apply_service.model_loading import load_model
from apply_service.pipeline import PipelineLimits
from apply_service.service import ApplyService

_LOGGER = logging.getLogger(__name__)
_BACKLOG = 128


class ServerStartError(Exception):
    """The address cannot be listened on."""


def serve(settings: Settings) -> int:
    """Serve until SIGTERM (0) or Ctrl-C (KeyboardInterrupt); 1 if the model cannot be loaded.

    The socket is taken before the model is loaded, so a second server fails at once. Raises
    ServerStartError.
    """
    logging.basicConfig(
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    listener = listen(settings.host, settings.port)
    service = ApplyService(
        partial(load_model, settings, report=_LOGGER.info),
        limits=PipelineLimits(
            max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
        ),
        default_deadline_s=settings.deadline_s,
        drain_s=settings.drain_s,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(service, max_body_bytes=settings.max_body_bytes),
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=max(1, math.ceil(settings.drain_s)),
        )
    )
    service.on_load_failed(partial(setattr, server, "should_exit", True))
    signal.signal(signal.SIGTERM, _outlive_shutdown)
    _LOGGER.info("listening on %s, loading the model %s", url_of(listener), settings.model)
    server.run(sockets=[listener])
    return 0 if service.load_error is None else 1


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ServerStartError if the port is taken or the host is unknown."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise ServerStartError(
            f"cannot listen on {host}: {error}; choose another --host"
        ) from error
    family, kind, protocol, _, address = addresses[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ServerStartError(
            f"cannot listen on {host}:{port}: {error.strerror}; stop the other server or choose"
            " another --port (0 takes a free one)"
        ) from error
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where the socket can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _outlive_shutdown(_signal: int, _frame: FrameType | None) -> None:
    """The web server raises its signal again once it is done; by then there is nothing to do."""
