"""Replies are read right however the network cuts them, and what is no reply is an error."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batching.cache.redis.connection import RedisConnection, Reply
from batching.cache.redis.url import RedisAddress
from batching.errors import RedisProtocolError, RedisReplyError

WAIT_S = 10.0


@contextmanager
def connected(pieces: Sequence[bytes]) -> Iterator[RedisConnection]:
    """A connection to a server that greets, then sends `pieces` one by one and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            client.recv(1000)
            client.sendall(b"*2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n")
            for piece in pieces:
                client.sendall(piece)

    thread = threading.Thread(target=serve)
    thread.start()
    address = RedisAddress(host="127.0.0.1", port=listener.getsockname()[1])
    connection = RedisConnection(address, connect_timeout_s=WAIT_S)
    connection.set_deadline(time.monotonic() + WAIT_S)
    try:
        yield connection
    finally:
        connection.close()
        thread.join()
        listener.close()


def cut(content: bytes, seed: int) -> list[bytes]:
    """Pieces of random length, many of a byte or two."""
    generator = random.Random(seed)
    pieces = []
    while content:
        size = generator.choice([1, 2, 7, 100, 70_000])
        pieces.append(content[:size])
        content = content[size:]
    return pieces


def encode(reply: Reply) -> bytes:
    if reply is None:
        return b"$-1\r\n"
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, bytes):
        return b"$%d\r\n%s\r\n" % (len(reply), reply)
    return b"*%d\r\n" % len(reply) + b"".join(map(encode, reply))


REPLIES = st.recursive(
    st.none() | st.integers(-(2**40), 2**40) | st.binary(max_size=200),
    lambda children: st.lists(children, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None)
@given(replies=st.lists(REPLIES, min_size=1, max_size=5), seed=st.integers(0, 99))
def test_replies_however_they_are_cut(replies: list[Reply], seed: int) -> None:
    content = b"".join(map(encode, replies))
    with connected([*cut(content[:3000], seed), content[3000:]]) as connection:
        assert [connection.read_reply() for _ in replies] == replies


@pytest.mark.parametrize("num_bytes", [1, 100, 65_534, 65_536, 65_538, 300_001])
def test_values_go_straight_into_memory(num_bytes: int) -> None:
    values = [random.Random(seed).randbytes(num_bytes) for seed in range(3)]
    content = b"".join(encode(value) for value in values) + b"$-1\r\n:7\r\n"
    pieces = cut(content, 1) if num_bytes < 1000 else [content]
    with connected(pieces) as connection:
        for value in values:
            memory = memoryview(bytearray(num_bytes))
            assert connection.read_bulk_into(memory)
            assert memory == value
        assert not connection.read_bulk_into(memoryview(bytearray(num_bytes)))
        assert connection.read_reply() == 7


@pytest.mark.parametrize(
    "content",
    [
        b"?what\r\n",
        b":x\r\n",
        b"$9999999\r\n",
        b"*9999999999\r\n",
        b"*1\r\n" * 9,
        b"x" * 50_000,
    ],
)
def test_what_is_no_reply(content: bytes) -> None:
    with connected([content]) as connection, pytest.raises(RedisProtocolError):
        connection.read_reply()


@pytest.mark.parametrize("content", [b"$5\r\nabcde\r\n", b"$4\r\nabcdeX\r\n", b":4\r\n"])
def test_what_is_no_value_of_this_length(content: bytes) -> None:
    with connected([content]) as connection, pytest.raises(RedisProtocolError):
        connection.read_bulk_into(memoryview(bytearray(4)))


def test_errors_leave_the_connection_in_step() -> None:
    with connected([b"-OOM no\r\n:1\r\n-WRONGTYPE x\r\n:2\r\n"]) as connection:
        with pytest.raises(RedisReplyError, match="OOM no"):
            connection.read_reply()
        assert connection.read_reply() == 1
        with pytest.raises(RedisReplyError, match="WRONGTYPE"):
            connection.read_bulk_into(memoryview(bytearray(4)))
        assert connection.read_reply() == 2


def test_an_end_and_a_silence_are_told_apart() -> None:
    with connected([b"$10\r\nabc"]) as connection, pytest.raises(ConnectionResetError):
        connection.read_bulk_into(memoryview(bytearray(10)))
    with connected([]) as connection:
        connection.set_deadline(time.monotonic() - 1)
        with pytest.raises(TimeoutError):
            connection.read_reply()
