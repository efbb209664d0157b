"""A Redis that announces endless lists is refused before anything is made for them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from redis.exceptions import InvalidResponse

from apply_service.http.guard.limits.count_store import RedisCounts
from apply_service.http.guard.limits.reply_bounds import MAX_ITEMS, BoundedStream
from batching.cache.redis.url import parse_redis_url

LOCAL = ("127.0.0.1", 0)
ENDLESS = b"*1000000000\r\n" + b"*1\r\n" * 10_000


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    """The content in pieces."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def read_in(content: bytes, size: int) -> bytes:
    """All that a bounded stream lets through of a content that comes in pieces."""
    reader = asyncio.StreamReader()
    stream = BoundedStream(reader)
    read = b""
    for piece in pieces(content, size):
        reader.feed_data(piece)
        read += await stream.read(1 << 16)
    return read


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("sign", "*%~>")
def test_a_long_list_is_refused_wherever_it_is_cut(size: int, sign: str) -> None:
    allowed = f":1\r\n{sign}{MAX_ITEMS}\r\n".encode()
    assert asyncio.run(read_in(allowed, size)) == allowed
    with pytest.raises(InvalidResponse, match=f"limit is {MAX_ITEMS}"):
        asyncio.run(read_in(allowed + f"{sign}{MAX_ITEMS}0\r\n".encode(), size))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_leading_zeros_hide_nothing(size: int) -> None:
    with pytest.raises(InvalidResponse):
        asyncio.run(read_in(b"*" + b"0" * 50 + b"1000000000\r\n", size))


def test_the_counts_of_replicas_refuse_an_endless_list() -> None:
    served = threading.Thread(target=_answer_once, args=(server := socket.create_server(LOCAL),))
    served.start()

    async def count() -> None:
        address = parse_redis_url(f"redis://127.0.0.1:{server.getsockname()[1]}/0")
        counts = RedisCounts(address, timeout_s=20.0)
        async with counts:
            with pytest.raises(InvalidResponse, match="1000000000 items"):
                await counts.add({"key": 1}, expires_in=60)

    asyncio.run(count())
    served.join()


def _answer_once(server: socket.socket) -> None:
    with server, server.accept()[0] as connection, suppress(OSError):
        connection.sendall(ENDLESS)
        while connection.recv(1 << 16):
            pass
