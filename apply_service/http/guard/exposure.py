"""Checks that a server that others can reach has keys."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable

from apply_service.http.guard.keys.key_file import SCOPES, KeyFile, KeyFileError, make_key
from apply_service.http.guard.keys.key_ring import KeyRing
from apply_service.http.server.listener import ServerStartError

FIRST_KEY_NAME = "first"


class ExposedWithoutKeysError(ServerStartError):
    """Others could reach the server, and nobody would need a key."""


def is_private(listener: socket.socket) -> bool:
    """True if nobody but this machine can connect."""
    address = ipaddress.ip_address(listener.getsockname()[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def open_key_ring(
    file: KeyFile,
    *,
    is_named: bool,
    is_private: bool,
    allows_anonymous: bool,
    creates_key: bool,
    show: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> KeyRing:
    """Open the server's keys; a server that others can reach must have one.

    `is_named` if the settings name the file: then it is followed even if it is not there yet. With
    `creates_key` a first key is made where there is none, and shown once.
    Raises ExposedWithoutKeysError or KeyFileError.
    """
    if creates_key and not is_named:
        raise ExposedWithoutKeysError(
            "create_key writes a first API key into this server's own file, and keys_file is unset;"
            " name one with --keys-file FILE"
        )
    keys = KeyRing(file, is_followed=is_named or file.path.exists())
    if creates_key and not keys.has_keys:
        return _with_first_key(file, show)
    if keys.has_keys:
        return keys
    if not is_private and not allows_anonymous:
        option = f" --keys-file {file.path}" if is_named else ""
        raise ExposedWithoutKeysError(
            "others can reach this address, and there are no API keys: everybody could use the"
            f" server. Make a key with `apply-service key create --name NAME{option}`, or listen on"
            " this machine alone with `--host 127.0.0.1`, or say --allow-anonymous if a proxy in"
            " front asks for keys"
        )
    return keys


def _with_first_key(file: KeyFile, show: Callable[[str], None]) -> KeyRing:
    """A ring with a new key, which lasts as long as the process if the file cannot be written."""
    try:
        created = file.create(FIRST_KEY_NAME, SCOPES)
        keys, place = KeyRing(file), f"its hash is kept in {file.path}"
    except KeyFileError as error:
        created = make_key(FIRST_KEY_NAME, SCOPES)
        keys, place = KeyRing(file, extra=(created.record,)), f"it ends with this process: {error}"
    show(f"There were no API keys. This one is shown once ({place}):\n{created.text}")
    return keys
