"""Keys of a running server: looked up by hash, read again when their file changes."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from apply_service.http.guard.keys.key_file import KeyFile, KeyFileError, KeyRecord, hash_key

# How long a revoked key may go on to work.
RELOAD_S = 1.0

_LOGGER = logging.getLogger(__name__)

_Version = tuple[int, int, int] | None


class KeyRing:
    """The keys of a file and those that live as long as the process. Used on the event loop."""

    def __init__(
        self,
        file: KeyFile,
        *,
        extra: tuple[KeyRecord, ...] = (),
        is_followed: bool = True,
        reload_s: float = RELOAD_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the file, and look every `reload_s` seconds for changes if it `is_followed`.

        Raises KeyFileError.
        """
        self._is_followed = is_followed
        self._reload_s = reload_s
        self._file = file
        self._extra = extra
        self._clock = clock
        self._by_sha256: dict[str, KeyRecord] = {}
        self._version = self._stat()
        self._set(file.read())
        self._checked_at = clock()

    @property
    def has_keys(self) -> bool:
        """True if there are keys, revoked ones included: then every caller must have one."""
        self._refresh()
        return bool(self._by_sha256)

    def find(self, text: str) -> KeyRecord | None:
        """The record of a key that is active now."""
        self._refresh()
        sha256 = hash_key(text)
        record = self._by_sha256.get(sha256)
        # The hash of a guess tells nothing about that of a key, so the lookup may take what time
        # it takes; the answer hangs on the comparison.
        if record is None or not hmac.compare_digest(record.sha256, sha256):
            return None
        return record if record.is_active(datetime.now(UTC)) else None

    def _refresh(self) -> None:
        """Read the file again if it changed; what cannot be read leaves the keys as they are."""
        if self._clock() < self._checked_at + self._reload_s:
            return
        self._checked_at = self._clock()
        version = self._stat()
        if version == self._version:
            return
        is_new, self._version = self._version is None, version
        if not self._is_followed:
            if is_new:
                _LOGGER.warning(
                    "there are API keys in %s now; this server started without and stays open until"
                    " it is restarted",
                    self._file.path,
                )
            return
        if version is None:
            _LOGGER.error(
                "the key file %s is gone; its keys stay valid until this server ends. Put it back,"
                " or make new keys with `apply-service key create --name NAME --keys-file %s`",
                self._file.path,
                self._file.path,
            )
            return
        try:
            self._set(self._file.read())
        except KeyFileError as error:
            _LOGGER.error("the keys stay unchanged: %s", error)
            return
        _LOGGER.info("read %d keys from %s", len(self._by_sha256), self._file.path)

    def _set(self, records: tuple[KeyRecord, ...]) -> None:
        self._by_sha256 = {record.sha256: record for record in (*records, *self._extra)}

    def _stat(self) -> _Version:
        try:
            found = self._file.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
