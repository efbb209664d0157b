"""The engine's process: `python -m apply_service.models.engine_main FD`, started by the server.

The settings come through the socket, so that no command line shows them. Ends when the other end of
the socket does.
"""

from __future__ import annotations

import logging
import os
import sys

import msgspec

from apply_service.config import Settings
from apply_service.observe.free_memory import keep_giving_back
from apply_service.observe.log_format import configure_logging
from apply_service.observe.log_stream import LogStream, drain_stderr
from batching.engine import Engine
from batching.remote.engine_server import serve_engine

_LOGGER = logging.getLogger(__name__)
# Threads that send and receive must not wait long for the one that plans.
_SWITCH_INTERVAL_S = 0.001


def load(settings_json: bytes) -> Engine:
    """The engine of these settings. Raises ModelStoreError, PromptError or EngineError."""
    settings = msgspec.json.decode(settings_json, type=Settings)
    configure_logging(
        settings.log_level,
        settings.log_format,
        shows_text=settings.log_text,
        is_beside_bar=True,
    )
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    keep_giving_back()
    from apply_service.models.loading import load_to_stay

    engine = load_to_stay(settings, report=_LOGGER.info).engine
    assert isinstance(engine, Engine), "it was loaded here"
    return engine


if __name__ == "__main__":
    LogStream.replace_stderr()
    code = serve_engine(int(sys.argv[1]), load)
    drain_stderr()
    os._exit(code)  # taking torch apart takes a second, and nothing is left to be told
