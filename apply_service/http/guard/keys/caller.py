"""The caller of the request that is being served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from apply_service.http.guard.keys.key_file import Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a verified key, or somebody without one; limits count by `name`."""

    name: str
    scopes: frozenset[Scope]
    key_id: str | None = None
    key_sha256: str | None = None
    is_limited: bool = True

    def may(self, scope: Scope | None) -> bool:
        """True if the caller has the scope; None needs no scope, `admin` has all."""
        return scope is None or scope in self.scopes or "admin" in self.scopes


# Follows a request through its tasks and threads; set by `serving` alone.
_CURRENT: ContextVar[Caller | None] = ContextVar("caller", default=None)


def current_caller() -> Caller | None:
    """The caller of the current request, None outside of a request."""
    return _CURRENT.get()


@contextmanager
def serving(caller: Caller) -> Iterator[None]:
    """Set the caller that `current_caller` returns inside the block."""
    token = _CURRENT.set(caller)
    try:
        yield
    finally:
        _CURRENT.reset(token)
