"""One connection to a Redis server: commands out, replies in, large values straight into memory."""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from collections.abc import Sequence

from batching.cache.redis.host_resolver import HostAddress, HostResolver
from batching.cache.redis.url import RedisAddress
from batching.errors import RedisProtocolError, RedisReplyError

Reply = int | bytes | None | list["Reply"]

_BUFFER_BYTES = 1 << 16
_MAX_DEPTH = 4
# What one reply may hold in all, values that go straight into memory aside.
_MAX_REPLY_BYTES = 1 << 20
_MIN_ITEM_BYTES = 2
_MAX_ERROR_CHARACTERS = 200
_NUMBER = re.compile(rb"-?[0-9]{1,18}")


class RedisConnection:
    """Speaks RESP2 over a blocking socket under a deadline. Used by one thread at a time.

    Every method may raise OSError (TimeoutError when the deadline passes), RedisReplyError for an
    answer that is an error, and RedisProtocolError; after all but RedisReplyError the connection
    must be closed, because replies may be under way.
    """

    def __init__(
        self,
        address: RedisAddress,
        *,
        connect_timeout_s: float,
        resolver: HostResolver | None = None,
    ) -> None:
        """Find the host, connect, log in and choose the database, all in `connect_timeout_s`."""
        self._deadline = time.monotonic() + connect_timeout_s
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._num_reply_bytes = 0
        self.num_received_bytes = 0
        self._socket = _connect(address, self._deadline, resolver or HostResolver())
        try:
            self._log_in(address)
        except BaseException:
            self.close()
            raise

    @property
    def is_silent(self) -> bool:
        """True if the connection is open and no unexpected reply waits on it."""
        if self._start != self._end:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

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
        """The next reply, None for a null; one of more than a megabyte is no reply."""
        self._num_reply_bytes = 0
        return self._read_reply(0)

    def read_bulk_into(self, memory: memoryview) -> bool:
        """Fill `memory` with the next reply, False if it is a null.

        A value of another length is a RedisProtocolError; nothing of it is read.
        """
        line = self._read_line()
        if line[:1] == b"-":
            raise _error_of(line)
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
            raise RedisProtocolError("a value is longer than its announced length")
        return True

    def skip_bulk(self, *, max_bytes: int) -> int:
        """Read the next reply, a value of at most `max_bytes`, keep nothing of it, give its length.

        0 for a null as well.
        """
        line = self._read_line()
        if line[:1] == b"-":
            raise _error_of(line)
        num_bytes = _number_of(line)
        if line[:1] != b"$" or num_bytes > max_bytes:
            raise RedisProtocolError(f"a value begins with {line[:32]!r}")
        if num_bytes < 0:
            return 0
        num_left = num_bytes
        while num_left:
            if self._start == self._end:
                self._start = self._end = 0
                self._fill(len(self._buffer))
            num_skipped = min(num_left, self._end - self._start)
            self._start += num_skipped
            num_left -= num_skipped
        if self._read_line():
            raise RedisProtocolError("a value is longer than its announced length")
        return num_bytes

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
        if mode == b"sentinel" or (mode == b"cluster" and address.kind != "cluster"):
            place = "/MASTER" if mode == b"sentinel" else ""
            raise RedisReplyError(
                f"UNSUPPORTED {address.host}:{address.port} is a {mode.decode()}; write"
                f" redis+{mode.decode()}://host:port{place}"
            )
        if address.db:
            self.call(b"SELECT", b"%d" % address.db)

    def _read_reply(self, depth: int) -> Reply:
        line = self._read_line()
        self._count(len(line) + 1)
        kind, text = line[:1], line[1:]
        if kind == b"+":
            return text
        if kind == b"-":
            raise _error_of(line)
        number = _number_of(line)
        if kind == b":":
            return number
        if kind == b"$":
            return None if number < 0 else self._read_bulk(number)
        if kind != b"*" or depth == _MAX_DEPTH:
            raise RedisProtocolError(f"a reply begins with {line[:32]!r}")
        if number < 0:
            return None
        self._count(_MIN_ITEM_BYTES * number)
        return [self._read_reply(depth + 1) for _ in range(number)]

    def _read_bulk(self, num_bytes: int) -> bytes:
        self._count(num_bytes)
        while self._end - self._start < num_bytes + 2:
            self._fill(num_bytes + 2)
        value = bytes(self._view[self._start : self._start + num_bytes])
        self._start += num_bytes + 2
        return value

    def _count(self, num_bytes: int) -> None:
        self._num_reply_bytes += num_bytes
        if self._num_reply_bytes > _MAX_REPLY_BYTES:
            raise RedisProtocolError(f"a reply has more than {_MAX_REPLY_BYTES} bytes")

    def _read_line(self) -> bytes:
        while True:
            stop = self._buffer.find(b"\r\n", self._start, self._end)
            if stop >= 0:
                line = bytes(self._view[self._start : stop])
                self._start = stop + 2
                return line
            if self._end - self._start > _BUFFER_BYTES // 2:
                raise RedisProtocolError("a line of a reply has no end")
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

    def _send_all(self, content: bytearray | bytes | memoryview) -> None:
        view = memoryview(content)
        while view:
            self._limit_time()  # `sendall` would begin anew with every part that goes out by TLS
            view = view[self._socket.send(view) :]

    def _limit_time(self) -> None:
        self._socket.settimeout(_time_left(self._deadline))


def _connect(address: RedisAddress, deadline: float, resolver: HostResolver) -> socket.socket:
    if address.unix_path is not None:
        unix = (socket.AF_UNIX, socket.SOCK_STREAM, 0, "", address.unix_path)
        return _connect_to(unix, _time_left(deadline), is_tcp=False)
    addresses = resolver.find(address.host, address.port, timeout_s=_time_left(deadline))
    plain = _connect_to_any(addresses, deadline)
    if not address.has_tls:
        return plain
    try:
        context = ssl.create_default_context(cafile=address.ca_path)
        if not address.checks_certificate:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if address.cert_path is not None:
            context.load_cert_chain(address.cert_path, address.key_path)
        plain.settimeout(_time_left(deadline))
        return context.wrap_socket(plain, server_hostname=address.host)
    except ValueError as error:
        plain.close()
        raise OSError(f"TLS with {address} cannot begin: {error}") from error
    except OSError:
        plain.close()
        raise


def _connect_to_any(addresses: Sequence[HostAddress], deadline: float) -> socket.socket:
    """Connect to the first that answers; each has an equal share of the time that is left."""
    problem = OSError("the host has no address")
    for num_tried, address in enumerate(addresses):
        timeout_s = _time_left(deadline) / (len(addresses) - num_tried)
        try:
            return _connect_to(address, timeout_s, is_tcp=True)
        except OSError as error:
            problem = error
    raise problem


def _connect_to(address: HostAddress, timeout_s: float, *, is_tcp: bool) -> socket.socket:
    family, kind, protocol, _, place = address
    plain = socket.socket(family, kind, protocol)
    try:
        plain.settimeout(timeout_s)
        plain.connect(place)
        if is_tcp:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        plain.close()
        raise
    return plain


def _time_left(deadline: float) -> float:
    """Seconds until then. Raises TimeoutError if it has passed."""
    remaining_s = deadline - time.monotonic()
    if remaining_s <= 0:
        raise TimeoutError("the deadline of the operation has passed")
    return remaining_s


def _field_of(reply: Reply, name: bytes) -> bytes | None:
    """The value behind a name in a flat list of names and values."""
    if not isinstance(reply, list):
        return None
    for found, value in zip(reply[::2], reply[1::2], strict=False):
        if found == name and isinstance(value, bytes):
            return value
    return None


def _error_of(line: bytes) -> RedisReplyError:
    """The server's own words, as far as they can be shown in a log."""
    text = line[1:].decode("ascii", "backslashreplace")[:_MAX_ERROR_CHARACTERS]
    return RedisReplyError("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


def _number_of(line: bytes) -> int:
    if not _NUMBER.fullmatch(line[1:]):
        raise RedisProtocolError(f"a reply begins with {line[:32]!r}")
    return int(line[1:])
