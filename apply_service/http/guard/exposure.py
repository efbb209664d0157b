"""Checks that a server that others can reach has keys."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from apply_service.http.guard.keys.key_file import SCOPES, KeyFile, KeyFileError, make_key
from apply_service.http.guard.keys.key_ring import KeyRing
from apply_service.http.server.listener import ServerStartError

_CONTAINER_FILES = (Path("/.dockerenv"), Path("/run/.containerenv"))
_CONTAINER_VARIABLES = ("KUBERNETES_SERVICE_HOST", "container")
FIRST_KEY_NAME = "first"


class ExposedWithoutKeysError(ServerStartError):
    """Others could reach the server, and nobody would need a key."""


def is_private(listener: socket.socket) -> bool:
    """True if nobody but this machine can connect."""
    address = ipaddress.ip_address(listener.getsockname()[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_in_container(
    environment: Mapping[str, str] = os.environ, *, files: tuple[Path, ...] = _CONTAINER_FILES
) -> bool:
    """True if this process runs in a container, as far as containers tell."""
    return any(environment.get(name) for name in _CONTAINER_VARIABLES) or any(
        path.exists() for path in files
    )


def open_key_ring(
    file: KeyFile,
    *,
    is_private: bool,
    allows_anonymous: bool,
    makes_first_key: bool,
    show: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> KeyRing:
    """Open the server's keys; a server that others can reach must have one.

    With `makes_first_key` it is made and shown; that is for containers, which are reached from
    outside or not at all.
    Raises ExposedWithoutKeysError or KeyFileError.
    """
    keys = KeyRing(file)
    if is_private or allows_anonymous or keys.has_keys:
        return keys
    if not makes_first_key:
        raise ExposedWithoutKeysError(
            "others can reach this address, and there are no API keys: everybody could use the"
            f" server. Make a key with `apply-service key create --name NAME` (kept in"
            f" {file.path}), or listen on 127.0.0.1, or say --allow-anonymous if a proxy in front"
            " asks for keys"
        )
    try:
        created = file.create(FIRST_KEY_NAME, SCOPES)
        keys, place = KeyRing(file), f"its hash is kept in {file.path}"
    except KeyFileError as error:
        created = make_key(FIRST_KEY_NAME, SCOPES)
        keys, place = KeyRing(file, extra=(created.record,)), f"it ends with this process: {error}"
    show(f"There were no API keys. This one is shown once ({place}):\n{created.text}")
    return keys
