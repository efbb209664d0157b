"""The header by which a balancer sends the edits of one file to one replica.

docs/affinity.json has test vectors; clients compute the same.
"""

from __future__ import annotations

import hashlib

AFFINITY_HEADER = "X-Apply-Affinity"
_VERSION = b"apply-affinity-1"
_MAX_START_BYTES = 1024
_TENANT_DIGITS = 8


def affinity_of(*, path: str | None, original: str | bytes, api_key: str | None) -> str:
    """32 hexadecimal digits, the same for each edit that a caller sends of one file.

    A file without a path is known by its first 1,024 bytes. Of the API key only 32 bits of its
    hash enter, so that nobody finds the key by this value.
    """
    tenant = hashlib.sha256(api_key.encode()).hexdigest()[:_TENANT_DIGITS] if api_key else ""
    if path:
        kind, subject = b"path", path.encode(errors="replace")
    else:
        start = original[:_MAX_START_BYTES]
        kind = b"text"
        subject = start if isinstance(start, bytes) else start.encode(errors="replace")
        subject = subject[:_MAX_START_BYTES]
    parts = b"\0".join((_VERSION, tenant.encode(), kind, subject))
    return hashlib.sha256(parts).hexdigest()[:32]
