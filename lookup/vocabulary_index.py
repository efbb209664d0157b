"""The bytes of a model's tokens, sorted, so that tokens can be found by their first bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple


class PrefixRange(NamedTuple):
    """The tokens, in sorted order from `start` to `stop`, that share their first `length` bytes."""

    start: int
    stop: int
    length: int


class VocabularyIndex:
    """Token bytes in sorted order; built once for a model, shared, never changed.

    Tokens without bytes (control tokens, unused ids) are in no range. It holds one reference and
    one number a token beside the bytes themselves.
    """

    __slots__ = ("_spellings", "_token_ids", "max_token_bytes", "root", "token_bytes")

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        """`token_bytes` has the bytes of every token, by id; empty for control tokens."""
        self.token_bytes = tuple(token_bytes)
        order = sorted(range(len(self.token_bytes)), key=self.token_bytes.__getitem__)
        order = order[sum(not spelling for spelling in self.token_bytes) :]
        self._spellings = [self.token_bytes[token_id] for token_id in order]
        self._token_ids = array("L", order)
        self.max_token_bytes = max(map(len, self._spellings), default=0)
        self.root = PrefixRange(0, len(self._spellings), 0)

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes of a token; empty for an unknown id."""
        return self.token_bytes[token_id] if 0 <= token_id < len(self.token_bytes) else b""

    def extend(self, prefix: PrefixRange, byte: int) -> PrefixRange | None:
        """The tokens of a range whose next byte is `byte`; None if there are none."""
        start, stop, length = prefix
        while start < stop and len(self._spellings[start]) == length:
            start += 1
        key = itemgetter(length)
        start = bisect_left(self._spellings, byte, start, stop, key=key)
        stop = bisect_right(self._spellings, byte, start, stop, key=key)
        return PrefixRange(start, stop, length + 1) if start < stop else None

    def spelled(self, prefix: PrefixRange) -> list[int]:
        """The ids of a range's tokens that end where the prefix does."""
        found: list[int] = []
        for at in range(prefix.start, prefix.stop):
            if len(self._spellings[at]) > prefix.length:
                break
            found.append(self._token_ids[at])
        return found

    def has_longer(self, prefix: bytes) -> bool:
        """True if any token begins with `prefix` and is longer."""
        at = bisect_right(self._spellings, prefix)
        return at < len(self._spellings) and self._spellings[at].startswith(prefix)

    def missing_bytes(self, text: Iterable[int]) -> list[int]:
        """The bytes of `text`, ascending, that no token spells alone."""
        return [byte for byte in sorted(set(text)) if not self._id_of(bytes((byte,)))]

    def longest_matches(self, text: bytes) -> list[int]:
        """`text` as tokens, each the longest that matches.

        Ends before the first byte with which no token begins.
        """
        found: list[int] = []
        at = 0
        while at < len(text):
            longest: list[int] = []
            prefix = self.root
            for byte in text[at : at + self.max_token_bytes]:
                longer = self.extend(prefix, byte)
                if longer is None:
                    break
                prefix = longer
                longest = self.spelled(prefix) or longest
            if not longest:
                break
            found.append(longest[0])
            at += len(self.token_bytes[longest[0]])
        return found

    def _id_of(self, spelling: bytes) -> list[int]:
        """The ids of the tokens with exactly these bytes."""
        start = bisect_left(self._spellings, spelling)
        stop = bisect_right(self._spellings, spelling)
        return list(self._token_ids[start:stop])
