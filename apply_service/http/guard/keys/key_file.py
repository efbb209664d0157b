"""The file of API keys: hashes, names and scopes; no key can be read from it.

KeyFileError ← UnknownKeyError

    {"version": 1, "keys": [{"id": "3f9c2a1b", "name": "ci", "sha256": "…64 hex digits…",
      "scopes": ["apply", "batch"], "created_at": "2026-01-31T12:00:00Z",
      "expires_at": null, "revoked_at": null}]}

`sha256` is that of the whole key as it is sent. A key is 256 random bits, so a plain hash of it can
neither be inverted nor guessed. Revoked keys stay in the file: they tell what was, and a server
whose keys are all revoked must not become one without keys.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs
from filelock import FileLock

from apply_service.apply.errors import ApplyError

Scope = Literal["apply", "batch", "admin"]
SCOPES: tuple[Scope, ...] = ("apply", "batch", "admin")

FORMAT_VERSION = 1
# Scanners of secrets and people know a key by its first letters, and which one it is by its id.
_KEY = re.compile(r"apply_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")
_NUM_SECRET_BYTES = 32
_LOCK_TIMEOUT_S = 10.0


class KeyFileError(ApplyError):
    """The file of keys cannot be read, written or trusted."""


class UnknownKeyError(KeyFileError):
    """No key has this id or name."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One key as the file knows it."""

    id: str
    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_active(self, now: datetime) -> bool:
        """True if the key opens anything at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class _KeyDocument(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    keys: tuple[KeyRecord, ...]


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key, with the text that is shown once and kept nowhere."""

    record: KeyRecord
    text: str


def default_key_path() -> Path:
    """The default path of the file of keys."""
    return platformdirs.user_config_path("apply-service") / "keys.json"


def hash_key(text: str) -> str:
    """The SHA-256 by which a key is looked up, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def has_key_form(text: str) -> bool:
    """True if a text has the form of a key."""
    return _KEY.fullmatch(text) is not None


def make_key(
    name: str, scopes: tuple[Scope, ...], *, expires_in: timedelta | None = None
) -> CreatedKey:
    """A new random key; nothing is stored."""
    key_id = secrets.token_hex(4)
    text = f"apply_{key_id}_{secrets.token_urlsafe(_NUM_SECRET_BYTES)}"
    now = _now()
    record = KeyRecord(
        id=key_id,
        name=name,
        sha256=hash_key(text),
        scopes=scopes,
        created_at=now,
        expires_at=None if expires_in is None else now + expires_in,
    )
    return CreatedKey(record, text)


class KeyFile:
    """Reads and changes one file; changes are whole or not at all, one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[KeyRecord, ...]:
        """All keys, none if there is no file. Raises KeyFileError."""
        try:
            content = self.path.read_bytes()
            mode = stat.S_IMODE(self.path.stat().st_mode)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise KeyFileError(
                f"cannot read the keys in {self.path}: {error.strerror}; name a file that you may"
                " read with the setting keys_file"
            ) from error
        if mode & stat.S_IWOTH:
            raise KeyFileError(
                f"{self.path} has the mode {mode:04o}, so everybody can add keys to it; run `chmod"
                f" 600 {self.path}` and check that each key is yours"
            )
        return self._decode(content)

    def create(
        self, name: str, scopes: tuple[Scope, ...], *, expires_in: timedelta | None = None
    ) -> CreatedKey:
        """Add a new key. Raises KeyFileError, also if a key that is not revoked has the name."""
        created = make_key(name, scopes, expires_in=expires_in)

        def add(records: tuple[KeyRecord, ...]) -> tuple[KeyRecord, ...]:
            if any(record.name == name and record.revoked_at is None for record in records):
                raise KeyFileError(
                    f"a key with the name {name!r} exists; revoke it or choose another name"
                )
            return (*records, created.record)

        self._change(add)
        return created

    def revoke(self, id_or_name: str) -> KeyRecord:
        """Revoke a key. Raises UnknownKeyError, also if it is revoked already."""
        now = _now()
        revoked: list[KeyRecord] = []

        def mark(records: tuple[KeyRecord, ...]) -> tuple[KeyRecord, ...]:
            changed = []
            for record in records:
                if id_or_name in (record.id, record.name) and record.revoked_at is None:
                    record = msgspec.structs.replace(record, revoked_at=now)
                    revoked.append(record)
                changed.append(record)
            if not revoked:
                raise UnknownKeyError(
                    f"no unrevoked key has the id or name {id_or_name!r}; `apply-service key list`"
                    " shows all keys"
                )
            return tuple(changed)

        self._change(mark)
        return revoked[0]

    def _decode(self, content: bytes) -> tuple[KeyRecord, ...]:
        try:
            document = msgspec.json.decode(content, type=_KeyDocument)
        except msgspec.DecodeError as error:
            raise KeyFileError(
                f"{self.path} is not a key file: {error}; restore it, or delete it and create new"
                " keys"
            ) from error
        if document.version != FORMAT_VERSION:
            raise KeyFileError(
                f"{self.path} has the format version {document.version}, this program reads"
                f" {FORMAT_VERSION}; use the program that wrote it"
            )
        return document.keys

    def _change(self, change: Callable[[tuple[KeyRecord, ...]], tuple[KeyRecord, ...]]) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self.path.parent, os.W_OK):  # a lock would be waited for in vain
                raise PermissionError(f"the folder {self.path.parent} is read-only")
            with FileLock(f"{self.path}.lock", timeout=_LOCK_TIMEOUT_S, mode=0o600):
                self._write(change(self.read()))
        except OSError as error:  # a lock that nobody lets go is one too
            raise KeyFileError(
                f"cannot write the keys to {self.path}: {error}; name another file with the"
                " setting keys_file"
            ) from error

    def _write(self, records: tuple[KeyRecord, ...]) -> None:
        document = _KeyDocument(version=FORMAT_VERSION, keys=records)
        content = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
        # mkstemp makes files that only their owner can read.
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".keys-")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
