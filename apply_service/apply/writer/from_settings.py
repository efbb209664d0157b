"""The writer that the settings name."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from apply_service.apply.remote.endpoint import WRITER, RemoteEndpoint
from apply_service.apply.remote.server import RemoteTerms
from apply_service.apply.writer.writer import Observe, Writer, nobody_observes
from apply_service.config import WRITER_KEY_VARIABLE, Settings


def writer_of(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    observe: Observe = nobody_observes,
    may_rest: bool = True,
) -> Writer | None:
    """The writer of the settings; None without an address. Raises RemoteUrlError.

    Its API key is read apart from the settings, because command lines can be seen by others. One
    that may not rest is asked as often as you like, whatever it answers.
    """
    if settings.writer_url is None:
        return None
    terms = RemoteTerms(
        accuracy=settings.writer_accuracy,
        timeout_s=settings.writer_timeout_s,
        per_minute=settings.writer_per_minute if may_rest else sys.maxsize,
        may_rest=may_rest,
    )
    api_key = environment.get(WRITER_KEY_VARIABLE)
    endpoint = RemoteEndpoint(settings.writer_url, role=WRITER, api_key=api_key)
    return Writer(endpoint, terms, model=settings.writer_model, observe=observe)
