"""Who shares cached keys and values with whom."""

from __future__ import annotations

import hashlib
from typing import Literal

CacheSharing = Literal["key", "all"]


def cache_salt_of(authorization: str | None, sharing: CacheSharing) -> bytes:
    """The salt of a caller: by API key, or the same one for all.

    A cache that is shared tells by its speed what others have sent, so keys are kept apart. It is
    a digest, because salts end up in hashes that leave the process.
    """
    if sharing == "all" or not authorization:
        return b""
    _, _, key = authorization.strip().rpartition(" ")
    return hashlib.sha256(b"tenant\0" + key.encode("utf-8", "replace")).digest()
