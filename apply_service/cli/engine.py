"""`apply-service engine`: one engine behind a Unix socket, for several servers of a machine."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, cast

from apply_service.apply.errors import UsageError
from apply_service.config import Settings
from apply_service.observe.free_memory import keep_giving_back
from apply_service.observe.log_format import configure_logging
from apply_service.observe.log_stream import LogStream
from apply_service.observe.progress import Progress
from batching.remote.engine_listener import listen_at, serve_shared

if TYPE_CHECKING:  # it brings torch
    from batching.engine import Engine

_LOGGER = logging.getLogger(__name__)
# Threads that send and receive must not wait long for the one that plans.
_SWITCH_INTERVAL_S = 0.001


def run_engine(settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C, or until a part of the device is lost; the exit code.

    Raises UsageError without a socket, ModelStoreError, PromptError or EngineError.
    """
    if settings.engine_socket is None:
        raise UsageError("an engine needs a socket; give --engine-socket PATH")
    LogStream.replace_stderr()
    configure_logging(settings.log_level, settings.log_format, shows_text=settings.log_text)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    keep_giving_back()
    is_ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: is_ending.set())
    # Taken before anything slow, so that a second engine fails at once.
    with listen_at(Path(settings.engine_socket)) as listener:
        from apply_service.models.loading import load_to_stay

        progress = Progress(sys.stderr)
        progress.show_stage(f"loading the model {settings.model}")
        try:
            loaded = load_to_stay(settings, report=_LOGGER.info)
        finally:
            progress.clear()
        _LOGGER.info("%s is served at %s", loaded.name, settings.engine_socket)
        engine = cast("Engine", loaded.engine)
        serve_shared(listener, engine, until=is_ending, drain_s=settings.drain_s)
    return 1 if engine.is_lost else 0  # whoever watches over it starts it again
