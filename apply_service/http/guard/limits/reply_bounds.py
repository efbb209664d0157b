"""Refuses replies of a Redis that announce more items than any answer to us has.

A C parser makes room for all items of a list as soon as it reads their number: a billion of them
hold the process for seconds, whatever the deadline.
"""

from __future__ import annotations

import re
from typing import Any

from redis.asyncio.connection import DefaultParser
from redis.exceptions import InvalidResponse

MAX_ITEMS = 1000
# A number may be cut by the border of two pieces; one of more digits is refused, whatever it is.
_MAX_DIGITS = 24
_OVERLAP_BYTES = _MAX_DIGITS + 8
# Of lists, maps, sets and pushes (RESP3).
_NUM_ITEMS = re.compile(rb"[*%~>](\d+)")


class BoundedParser(DefaultParser):  # type: ignore[misc, valid-type]
    """The client's own parser, which reads through `BoundedStream`."""

    _stream: Any

    def on_connect(self, connection: Any) -> None:
        """As in redis-py."""
        super().on_connect(connection)
        self._stream = BoundedStream(self._stream)


class BoundedStream:
    """A stream whose `read` raises InvalidResponse for a reply with over `MAX_ITEMS` items."""

    def __init__(self, stream: Any) -> None:
        self._wrapped = stream
        self._last = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    async def read(self, size: int) -> bytes:
        """The next bytes, at most `size`."""
        piece: bytes = await self._wrapped.read(size)
        for found in _NUM_ITEMS.finditer(self._last + piece):
            digits = found[1][: _MAX_DIGITS + 1].decode()
            if len(digits) > _MAX_DIGITS or int(digits) > MAX_ITEMS:
                raise InvalidResponse(f"Redis announced {digits} items; the limit is {MAX_ITEMS}")
        self._last = (self._last + piece)[-_OVERLAP_BYTES:]
        return piece
