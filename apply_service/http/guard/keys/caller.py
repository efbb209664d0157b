"""Who sent the request that is being served."""

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
        """Whether a scope is among the caller's; None needs none, admin has them all."""
        return scope is None or scope in self.scopes or "admin" in self.scopes


# Follows a request through its tasks and threads; set by `serving` alone.
_CURRENT: ContextVar[Caller | None] = ContextVar("caller", default=None)


def current_caller() -> Caller | None:
    """Whose request is being served, None outside of one."""
    return _CURRENT.get()


@contextmanager
def serving(caller: Caller) -> Iterator[None]:
    """Make `caller` the one that `current_caller` gives."""
    token = _CURRENT.set(caller)
    try:
        yield
    finally:
        _CURRENT.reset(token)
