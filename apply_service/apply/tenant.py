"""Decides which callers share cached keys and values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from apply_service.http.guard.keys.caller import current_caller

CacheSharing = Literal["key", "all"]


def sent_key_of(headers: Mapping[str, str]) -> str | None:
    """What a request sends in the place of a key; `Authorization` comes before `x-api-key`."""
    return headers.get("authorization") or headers.get("x-api-key")


def cache_salt_of(sent_key: str | None, sharing: CacheSharing) -> bytes:
    """The salt of a caller: from the verified API key, or one salt for all.

    While a server needs no keys, any text that is sent as a key keeps callers apart. The speed of a
    shared cache would tell what others have sent, so keys are kept apart. The salt is a digest,
    because salts end up in hashes that leave the process.
    """
    if sharing == "all":
        return b""
    caller = current_caller()
    if caller is not None and caller.key_sha256 is not None:
        return _digest(b"key", caller.key_sha256)
    if not sent_key:
        return b""
    _, _, key = sent_key.strip().rpartition(" ")
    return _digest(b"text", key)


def _digest(kind: bytes, text: str) -> bytes:
    """The digest of a text of one kind; two kinds of the same text are two tenants.

    Otherwise anybody could send the text that a key's digest is.
    """
    content = b"tenant\0" + kind + b"\0" + text.encode("utf-8", "replace")
    return hashlib.sha256(content).digest()
