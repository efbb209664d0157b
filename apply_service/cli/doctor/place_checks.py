"""Places on this machine: the folder of prepared models, and the server's port."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from apply_service.cli.doctor.check import Check, failed, passed, warned
from apply_service.config import Settings
from apply_service.http.server.listener import ServerStartError, listen
from apply_service.models.store import cache_dir

# The embedded model takes this much, twice while an adapter is merged.
_MIN_FREE_BYTES = 1 << 30


def check_folder() -> Check:
    """The folder of prepared models: writable, with room for one."""
    folder = cache_dir()
    existing = _nearest_existing(folder)
    free_bytes = shutil.disk_usage(existing).free
    facts = {"path": str(folder), "free_bytes": free_bytes}
    if not os.access(existing, os.W_OK | os.X_OK):
        # A server that has its model never writes there.
        remedy = "set APPLY_SERVICE_CACHE to a folder of yours before a model is prepared"
        return warned("folder", f"{folder} cannot be written", remedy=remedy, **facts)
    text = f"{folder}, {free_bytes / 1e9:.1f} GB free"
    if free_bytes < _MIN_FREE_BYTES:
        remedy = "free some space before another model is prepared"
        return warned("folder", text, remedy=remedy, **facts)
    return passed("folder", text, **facts)


def check_port(settings: Settings) -> Check:
    """Whether the server could listen where it is told to."""
    try:
        listen(settings.host, settings.port).close()
    except ServerStartError as error:
        return failed("port", str(error), host=settings.host, port=settings.port)
    text = f"{settings.host}:{settings.port} is free"
    return passed("port", text, host=settings.host, port=settings.port)


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
