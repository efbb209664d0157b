"""The header by which a balancer sends the edits of one file to one replica.

`docs/affinity.json` of the service has test vectors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

AFFINITY_HEADER = "X-Apply-Affinity"
_VERSION = b"apply-affinity-1"
_MAX_START_BYTES = 1024
_TENANT_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Subject:
    """What a request is about: a file by its path, or by its first bytes where it has none."""

    kind: bytes
    name: bytes


def subject_of(path: str | None, original: str | bytes) -> Subject:
    """The file of an edit, which is known by 1,024 bytes where it has no path."""
    if path:
        return Subject(b"path", path.encode(errors="replace"))
    start = original[:_MAX_START_BYTES]
    content = start if isinstance(start, bytes) else start.encode(errors="replace")
    return Subject(b"text", content[:_MAX_START_BYTES])


def affinity_of(subject: Subject, api_key: str | None) -> str:
    """32 hexadecimal digits, the same for each edit that a caller sends of one file.

    Of the API key only 32 bits of its hash enter, so that nobody finds the key by this value.
    """
    tenant = hashlib.sha256(api_key.encode()).hexdigest()[:_TENANT_DIGITS] if api_key else ""
    parts = b"\0".join((_VERSION, tenant.encode(), subject.kind, subject.name))
    return hashlib.sha256(parts).hexdigest()[:32]
