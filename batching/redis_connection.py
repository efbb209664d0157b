"""One connection to a Redis server: commands out, replies in, large values straight into memory."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence

from batching.errors import RedisProtocolError, RedisReplyError
from batching.redis_url import RedisAddress

Reply = int | bytes | None | list["Reply"]

_BUFFER_BYTES = 1 << 16
_MAX_DEPTH = 4
_MAX_ITEMS = 1 << 20


class RedisConnection:
    """Speaks RESP2 over a blocking socket under a deadline. Used by one thread at a time.

    Every method may raise OSError (TimeoutError when the deadline passes), RedisReplyError for an
    answer that is an error, and RedisProtocolError; after all but RedisReplyError the connection
    must be closed, because replies may be under way.
    """

    def __init__(self, address: RedisAddress, *, connect_timeout_s: float) -> None:
        """Connect, log in and choose the database."""
        self._deadline = time.monotonic() + connect_timeout_s
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self.num_received_bytes = 0
        self._socket = _connect(address, connect_timeout_s)
        try:
            self._log_in(address)
        except BaseException:
            self.close()
            raise

    def set_deadline(self, deadline: float) -> None:
        """No later call lasts beyond this time of `time.monotonic`."""
        self._deadline = deadline

    def close(self) -> None:
        """End the connection; what is under way is lost."""
        self._socket.close()

    def send(self, commands: Sequence[Sequence[bytes | memoryview]]) -> None:
        """Send commands, each a list of arguments; their replies come in the same order."""
        small = bytearray()
        for arguments in commands:
            small += b"*%d\r\n" % len(arguments)
            for argument in arguments:
                small += b"$%d\r\n" % len(argument)
                if len(argument) > _BUFFER_BYTES:
                    self._send_all(small)
                    self._send_all(argument)
                    small = bytearray()
                else:
                    small += argument
                small += b"\r\n"
        self._send_all(small)

    def call(self, *arguments: bytes | memoryview) -> Reply:
        """Send one command and read its reply."""
        self.send([arguments])
        return self.read_reply()

    def read_reply(self) -> Reply:
        """The next reply, None for a null."""
        return self._read_reply(0)

    def read_bulk_into(self, memory: memoryview) -> bool:
        """Fill `memory` with the next reply, False if it is a null.

        A value of another length is a RedisProtocolError; nothing of it is read.
        """
        line = self._read_line()
        if line[:1] == b"-":
            raise RedisReplyError(line[1:].decode("utf-8", "replace"))
        if line == b"$-1":
            return False
        if line != b"$%d" % len(memory):
            raise RedisProtocolError(f"a value begins with {line[:32]!r}, not ${len(memory)}")
        num_filled = min(self._end - self._start, len(memory))
        memory[:num_filled] = self._view[self._start : self._start + num_filled]
        self._start += num_filled
        while num_filled < len(memory):
            num_filled += self._receive(memory[num_filled:])
        if self._read_line():
            raise RedisProtocolError("a value goes on behind its length")
        return True

    def _log_in(self, address: RedisAddress) -> None:
        login: list[bytes] = []
        if address.password is not None:
            username = (address.username or "default").encode()
            login = [b"AUTH", username, address.password.encode()]
        try:
            hello = self.call(b"HELLO", b"2", *login)
        except RedisReplyError as error:
            if not str(error).upper().startswith("ERR UNKNOWN COMMAND"):
                raise
            # A server before 6.0; it knows passwords alone.
            hello = None
            if address.password is not None:
                self.call(b"AUTH", address.password.encode())
        mode = _field_of(hello, b"mode")
        if mode in (b"cluster", b"sentinel"):
            raise RedisReplyError(
                f"UNSUPPORTED {address} is a {mode.decode()}; only a standalone server can be used"
            )
        if address.db:
            self.call(b"SELECT", b"%d" % address.db)

    def _read_reply(self, depth: int) -> Reply:
        line = self._read_line()
        kind, text = line[:1], line[1:]
        if kind == b"+":
            return text
        if kind == b"-":
            raise RedisReplyError(text.decode("utf-8", "replace"))
        number = _number_of(line)
        if kind == b":":
            return number
        if kind == b"$":
            return None if number < 0 else self._read_bulk(number)
        if kind != b"*" or depth == _MAX_DEPTH or number > _MAX_ITEMS:
            raise RedisProtocolError(f"a reply begins with {line[:32]!r}")
        return None if number < 0 else [self._read_reply(depth + 1) for _ in range(number)]

    def _read_bulk(self, num_bytes: int) -> bytes:
        if num_bytes > 1 << 20:
            raise RedisProtocolError(f"a value of {num_bytes} bytes came where none was asked for")
        while self._end - self._start < num_bytes + 2:
            self._fill(num_bytes + 2)
        value = bytes(self._view[self._start : self._start + num_bytes])
        self._start += num_bytes + 2
        return value

    def _read_line(self) -> bytes:
        while True:
            stop = self._buffer.find(b"\r\n", self._start, self._end)
            if stop >= 0:
                line = bytes(self._view[self._start : stop])
                self._start = stop + 2
                return line
            if self._end - self._start > _BUFFER_BYTES // 2:
                raise RedisProtocolError("a reply has a line without end")
            self._fill(_BUFFER_BYTES // 2)

    def _fill(self, num_wanted: int) -> None:
        """Receive more into the buffer, which holds at least `num_wanted` bytes."""
        if num_wanted > len(self._buffer):
            larger = bytearray(num_wanted + _BUFFER_BYTES)
            larger[: self._end] = self._view[: self._end]
            self._buffer, self._view = larger, memoryview(larger)
        if self._start and self._end + num_wanted > len(self._buffer):
            kept = bytes(self._view[self._start : self._end])
            self._view[: len(kept)] = kept
            self._start, self._end = 0, len(kept)
        self._end += self._receive(self._view[self._end :])

    def _receive(self, memory: memoryview) -> int:
        self._limit_time()
        num_bytes = self._socket.recv_into(memory)
        if not num_bytes:
            raise ConnectionResetError("the server closed the connection")
        self.num_received_bytes += num_bytes
        return num_bytes

    def _send_all(self, content: bytes | bytearray | memoryview) -> None:
        self._limit_time()
        self._socket.sendall(content)

    def _limit_time(self) -> None:
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the deadline of the operation has passed")
        self._socket.settimeout(remaining_s)


def _connect(address: RedisAddress, timeout_s: float) -> socket.socket:
    if address.unix_path is not None:
        plain = socket.socket(socket.AF_UNIX)
        try:
            plain.settimeout(timeout_s)
            plain.connect(address.unix_path)
        except OSError:
            plain.close()
            raise
        return plain
    plain = socket.create_connection((address.host, address.port), timeout_s)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not address.has_tls:
        return plain
    context = ssl.create_default_context(cafile=address.ca_path)
    if not address.checks_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except (OSError, ValueError):
        plain.close()
        raise


def _field_of(reply: Reply, name: bytes) -> bytes | None:
    """The value behind a name in a flat list of names and values."""
    if not isinstance(reply, list) or name not in reply[::2]:
        return None
    value = reply[reply[::2].index(name) * 2 + 1]
    return value if isinstance(value, bytes) else None


def _number_of(line: bytes) -> int:
    try:
        return int(line[1:])
    except ValueError as error:
        raise RedisProtocolError(f"a reply begins with {line[:32]!r}") from error
