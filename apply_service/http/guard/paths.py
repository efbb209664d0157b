"""The scope that each path needs."""

from __future__ import annotations

from litestar.utils import normalize_path

from apply_service.http.guard.keys import key_file

_HEALTH = "/health"
_METRICS = "/metrics"

_PAGE = ("/", "/docs")
_PAGE_FILES = "/page/"

_BATCHES = "/batches"

# With or without `/v1` before them. None is any key; whatever stands not here needs `apply`.
_SCOPES: dict[str, key_file.Scope | None] = {
    _BATCHES: "batch",
    "/models": None,
    "/tools": None,
    "/schema": None,
    _METRICS: "admin",
}


def is_open(path: str) -> bool:
    """True for health paths, which need no key."""
    return _is_under(path, _HEALTH)


def is_page(path: str) -> bool:
    """True for the page and its files, which hold nothing of anybody and need no key."""
    path = normalize_path(path)
    return path in _PAGE or path.startswith(_PAGE_FILES)


def is_metrics(path: str) -> bool:
    """True for the path of the metrics."""
    return normalize_path(path) == _METRICS


def is_streamed(path: str) -> bool:
    """True for paths whose bodies are processed while they arrive."""
    return _is_under(path, _BATCHES)


def needed_scope(path: str) -> key_file.Scope | None:
    """The scope that this path needs, None if it needs none."""
    return next((scope for prefix, scope in _SCOPES.items() if _is_under(path, prefix)), "apply")


def _is_under(path: str, prefix: str) -> bool:
    """True if a path, as the router reads it, is this one or one below it."""
    path = normalize_path(path).removeprefix("/v1")
    return path == prefix or path.startswith(prefix + "/")
