"""The id of the HTTP request that is being served, for answers, problems and the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Follows a request through its tasks and threads; set by `naming_request` alone.
_CURRENT: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    """The id of the request, None outside of one."""
    return _CURRENT.get()


@contextmanager
def naming_request(request_id: str) -> Iterator[None]:
    """Set the id that `current_request_id` returns inside the block."""
    token = _CURRENT.set(request_id)
    try:
        yield
    finally:
        _CURRENT.reset(token)
