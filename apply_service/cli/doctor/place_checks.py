"""Checks of the model folder, the server's port and its API keys."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from apply_service.cli.doctor.check import Check, failed, passed, skipped, warned
from apply_service.config import Settings
from apply_service.http.guard.exposure import is_private
from apply_service.http.guard.keys.key_file import KeyFile, KeyFileError, default_key_path
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
    """Check that the server can listen on its host and port."""
    try:
        listen(settings.host, settings.port).close()
    except ServerStartError as error:
        return failed("port", str(error), host=settings.host, port=settings.port)
    text = f"{settings.host}:{settings.port} is free"
    return passed("port", text, host=settings.host, port=settings.port)


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


_REMEDY = "make one with `apply-service key create --name NAME`, or listen on 127.0.0.1"


def check_access(settings: Settings) -> Check:
    """Check that the server would start with the keys that there are; makes none."""
    file = KeyFile(Path(settings.keys_file) if settings.keys_file else default_key_path())
    try:
        with listen(settings.host, 0) as listener:
            is_alone = is_private(listener)
        records = file.read()
    except ServerStartError:
        return skipped("keys", f"nothing can listen on {settings.host}")
    except KeyFileError as error:
        return failed("keys", str(error))
    now = datetime.now(UTC)
    num_active = sum(record.is_active(now) for record in records)
    facts = {"path": str(file.path), "num_active": num_active, "is_private": is_alone}
    if num_active:
        return passed("keys", f"{num_active} active in {file.path}", **facts)
    if records:
        text = f"all {len(records)} keys in {file.path} are revoked or have ended: nobody gets in"
        return failed("keys", text, remedy=_REMEDY, **facts)
    if settings.allow_anonymous:
        text = "nobody needs a key"
        if is_alone:
            return passed("keys", text, **facts)
        return warned("keys", text, remedy="have a proxy in front ask who is calling", **facts)
    if is_alone and not settings.create_key:
        return passed("keys", "none, and only this machine can connect", **facts)
    if settings.create_key and settings.keys_file:
        return passed("keys", "none; the first start makes one and shows it once", **facts)
    text = f"others can reach {settings.host}, and there are no keys; `serve` would refuse to start"
    return failed("keys", text, remedy=_REMEDY, **facts)
