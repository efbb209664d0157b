"""The value of one chunk of a prompt's keys and values: a header, then the payload.

Whoever reads a value trusts none of it: magic, version, layout, length, name, token ids and
checksum must all be as expected, and with a secret the code that only its owners can make.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import xxhash

FORMAT_VERSION = 1
KEY_PREFIX = b"apply-kv:"
HEADER_BYTES = 192
_MAGIC = b"APPLYKV\n"
# magic, version, header bytes, number of tokens, payload bytes, layout, key, token digest
_FIELDS = struct.Struct("<8sHHIQ16s32s32s")
_CHECKSUM = struct.Struct("<Q")
_CHECKSUM_OFFSET = _FIELDS.size
_CODE_OFFSET = _CHECKSUM_OFFSET + _CHECKSUM.size
_CODE_BYTES = 32

Damage = Literal["magic", "version", "layout", "key", "tokens", "length", "checksum", "code"]
DAMAGES = frozenset(get_args(Damage))


@dataclass(frozen=True, slots=True)
class ChunkName:
    """One chunk of one prompt.

    `key` [32 bytes] stands for all tokens up to the chunk's end, the model and the tenant. It never
    leaves the process where there is a secret: Redis sees a key made from it and the secret.
    `token_digest` [32 bytes] is the SHA-256 of the chunk's own tokens.
    """

    key: bytes
    token_digest: bytes


def digest_tokens(token_ids: Sequence[int]) -> bytes:
    """SHA-256 of token ids as 64-bit integers."""
    return hashlib.sha256(array("q", token_ids).tobytes()).digest()


class ValueFormat:
    """Writes and checks headers. `namespace` is everything that must be equal to share payloads.

    The first of `secrets` names and signs what is written; what the others have signed is read
    too, so that a secret can be replaced. The number of a secret is its generation.
    """

    def __init__(
        self,
        namespace: bytes,
        *,
        num_tokens: int,
        payload_bytes: int,
        secrets: Sequence[bytes] = (),
        version: int = FORMAT_VERSION,
    ) -> None:
        self.version = version
        self.num_tokens = num_tokens
        self.payload_bytes = payload_bytes
        self.value_bytes = HEADER_BYTES + payload_bytes
        self.generations = range(max(1, len(secrets)))
        self._layout = hashlib.sha256(namespace).digest()[:16]
        self._root = hmac.digest(b"", namespace, "sha256")
        # Without the secret nobody can compute the name of a text that they guess.
        self._name_keys = [
            hmac.digest(secret, b"names" + namespace, "sha256") for secret in secrets
        ]
        self._code_keys = [
            hmac.digest(secret, b"codes" + namespace, "sha256") for secret in secrets
        ]

    def name_chunk(self, block_hash: bytes, token_ids: Sequence[int]) -> ChunkName:
        """The name of the chunk of `token_ids` whose last block has `block_hash`."""
        key = hashlib.sha256(self._root + block_hash).digest()
        return ChunkName(key, digest_tokens(token_ids))

    def redis_key(self, name: ChunkName, generation: int = 0) -> bytes:
        """The chunk's key in Redis; the version keeps old and new replicas apart."""
        return KEY_PREFIX + b"%d:%s:%s" % (
            self.version,
            self._layout[:4].hex().encode(),
            self._shown_key(name, generation).hex().encode(),
        )

    def payload(self, value: memoryview) -> memoryview:
        """The part of a value behind its header."""
        return value[HEADER_BYTES:]

    def seal(self, value: memoryview, name: ChunkName) -> None:
        """Write the header before a payload that is complete."""
        value[:HEADER_BYTES] = bytes(HEADER_BYTES)
        value[: _FIELDS.size] = self._fields(name, 0)
        _CHECKSUM.pack_into(value, _CHECKSUM_OFFSET, self._checksum(value))
        if self._code_keys:
            value[_CODE_OFFSET : _CODE_OFFSET + _CODE_BYTES] = self._code(value, 0)

    def find_damage(self, value: memoryview, name: ChunkName, generation: int = 0) -> Damage | None:
        """The damage of a value that was read as the chunk `name`, None if it is sound."""
        if len(value) != self.value_bytes:
            return "length"
        expected = _FIELDS.unpack(self._fields(name, generation))
        found = _FIELDS.unpack_from(value)
        kinds: tuple[Damage, ...] = (
            "magic", "version", "length", "length", "length", "layout", "key", "tokens",
        )  # fmt: skip
        for kind, ours, theirs in zip(kinds, expected, found, strict=True):
            if ours != theirs:
                return kind
        if _CHECKSUM.unpack_from(value, _CHECKSUM_OFFSET)[0] != self._checksum(value):
            return "checksum"
        if self._code_keys:
            code = bytes(value[_CODE_OFFSET : _CODE_OFFSET + _CODE_BYTES])
            if not hmac.compare_digest(code, self._code(value, generation)):
                return "code"
        return None

    def _shown_key(self, name: ChunkName, generation: int) -> bytes:
        """The part of the chunk's name that Redis and its readers see."""
        if not self._name_keys:
            return name.key
        return hmac.digest(self._name_keys[generation], name.key, "sha256")

    def _fields(self, name: ChunkName, generation: int) -> bytes:
        return _FIELDS.pack(
            _MAGIC,
            self.version,
            HEADER_BYTES,
            self.num_tokens,
            self.payload_bytes,
            self._layout,
            self._shown_key(name, generation),
            name.token_digest,
        )

    def _checksum(self, value: memoryview) -> int:
        digest = xxhash.xxh3_64(value[: _FIELDS.size])
        digest.update(value[HEADER_BYTES:])
        return digest.intdigest()

    def _code(self, value: memoryview, generation: int) -> bytes:
        code = hmac.new(self._code_keys[generation], value[:_CODE_OFFSET], "sha256")
        code.update(value[HEADER_BYTES:])
        return code.digest()
