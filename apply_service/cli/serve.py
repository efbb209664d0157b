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
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from litestar import Litestar

from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.http.app import create_app
from apply_service.http.compat.settings import CompatSettings, parse_aliases
from apply_service.http.guard.from_settings import protection_of
from apply_service.http.server.connection import ConnectionLimits, GuardedProtocol
from apply_service.http.server.draining import Drain
from apply_service.http.server.graceful_server import GracefulServer
from apply_service.http.server.listener import make_room_for, url_of
from apply_service.models.found_model import FoundModel, try_find_model
from apply_service.observe.free_memory import keep_giving_back
from apply_service.observe.log_format import configure_logging
from apply_service.observe.progress import Progress
from apply_service.observe.tracing import open_tracing
from apply_service.service import ApplyService, BatchLimits, LoadedModel

if TYPE_CHECKING:
    from apply_service.apply.judge.judge import Judge
    from apply_service.apply.judge.judge import Observe as ObserveJudge
    from apply_service.apply.writer.writer import Observe as ObserveWriter
    from apply_service.apply.writer.writer import Writer

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
    configure_logging(
        settings.log_level,
        settings.log_format,
        shows_text=settings.log_text,
    )
    make_room_for(settings.max_connections)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    drain = Drain()
    protection = protection_of(settings, listener, drain)
    if announce is not None:
        announce()
    tracing = open_tracing(settings.otlp_endpoint, os.environ)
    service = _service(settings, try_find_model(settings))
    app = create_app(
        service, max_body_bytes=settings.max_body_bytes, protection=protection, tracing=tracing
    )
    server = GracefulServer(
        _web_config(settings, app), service=service, drain=drain, drain_s=settings.drain_s
    )
    service.on_model_missing(partial(setattr, server, "should_exit", True))
    signal.signal(signal.SIGTERM, _outlive_shutdown)
    keep_giving_back()
    _LOGGER.info("listening on %s, loading the model %s", url_of(listener), settings.model)
    try:
        server.run(sockets=[listener])
    finally:
        if tracing is not None:
            tracing.close()
    return 1 if service.is_model_missing else 0


def _service(settings: Settings, found: FoundModel | None) -> ApplyService:
    return ApplyService(
        partial(_load_model, settings, found),
        model_name=settings.model if found is None else found.location.name,
        limits=PipelineLimits(
            max_file_bytes=settings.max_file_bytes,
            max_draft_tokens=settings.max_draft_tokens,
            allows_lossy=settings.lossy_acceptance == "allowed",
        ),
        default_deadline_s=settings.deadline_s,
        max_deadline_s=settings.max_deadline_s,
        drain_s=settings.drain_s,
        cache_sharing=settings.cache_sharing,
        default_use_model=settings.use_model,
        auto_use_model=settings.auto_use_model,
        auto_use_served_model=settings.auto_use_served_model,
        default_on_doubt=settings.on_doubt,
        stall_s=settings.stall_s,
        max_waiting=settings.max_waiting,
        batch_limits=BatchLimits(
            max_in_flight=settings.max_batch_in_flight,
            deadline_s=settings.batch_deadline_s,
            max_lines=settings.max_batch_lines,
            max_batch_s=settings.max_batch_s,
        ),
        compat=CompatSettings(
            review=settings.compat_review, model_aliases=parse_aliases(settings.model_aliases)
        ),
        text_work=TextWork(num_workers=settings.text_workers),
        make_judge=partial(_make_judge, settings),
        make_writer=partial(_make_writer, settings),
    )


def _make_judge(settings: Settings, observe: ObserveJudge) -> Judge | None:
    if settings.judge_url is None:
        return None
    from apply_service.apply.judge.from_settings import judge_of

    return judge_of(settings, os.environ, observe=observe)


def _make_writer(settings: Settings, observe: ObserveWriter) -> Writer | None:
    if settings.writer_url is None:
        return None
    from apply_service.apply.writer.from_settings import writer_of

    return writer_of(settings, os.environ, observe=observe)


def _load_model(settings: Settings, found: FoundModel | None) -> LoadedModel:
    progress = Progress(sys.stderr)
    progress.show_stage(f"loading the model {settings.model}; other edits are served meanwhile")
    try:
        return _loaded_model(settings, found)
    finally:
        progress.clear()


def _loaded_model(settings: Settings, found: FoundModel | None) -> LoadedModel:
    if not settings.in_process:
        from apply_service.models.remote_engine import launch_model

        return launch_model(settings, report=_LOGGER.info, found=found)
    # It brings torch, which takes seconds; edits that need no model are served meanwhile.
    from apply_service.models.loading import load_to_stay

    return load_to_stay(settings, report=_LOGGER.info, found=found)


def _web_config(settings: Settings, app: Litestar) -> uvicorn.Config:
    limits = ConnectionLimits(
        max_connections=settings.max_connections,
        receive_timeout_s=settings.receive_timeout_s,
        send_timeout_s=settings.send_timeout_s,
    )
    return uvicorn.Config(
        cast(Any, app),
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
