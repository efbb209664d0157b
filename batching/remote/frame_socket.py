"""Frames over a socket: four bytes of length, then MessagePack."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

# A prompt of a million tokens takes five megabytes; what is larger is no frame of ours.
MAX_FRAME_BYTES = 256 << 20
_LENGTH = struct.Struct(">I")
_BUFFER_BYTES = 1 << 20

In = TypeVar("In")


class ConnectionLostError(OSError):
    """The other end has gone, or sends what is no frame."""


class FrameSocket(Generic[In]):
    """One end of a connection; one thread reads, any thread may send."""

    def __init__(self, connection: socket.socket, incoming: Any) -> None:
        """incoming: the type of the frames that are read"""
        self._socket = connection
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[In] = msgspec.msgpack.Decoder(incoming)
        self._lock = threading.Lock()
        self._unsent = b""
        self._read_ahead = bytearray()

    def send(self, frame: msgspec.Struct) -> None:
        """Send a frame, behind what is left of others. Raises ConnectionLostError."""
        self._send(self._encoded(frame))

    def flush(self) -> None:
        """Send what is left of frames. Raises ConnectionLostError."""
        self._send(b"")

    def try_send(self, frame: msgspec.Struct) -> bool:
        """Send a frame without waiting; False if it has to wait. Raises ConnectionLostError.

        What the socket has no room for is sent with the next frame or by `flush`.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._unsent:
                return False
            data = self._encoded(frame)
            num_sent = self._socket.send(data, socket.MSG_DONTWAIT)
            self._unsent = data[num_sent:]
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            raise ConnectionLostError(str(error)) from error
        finally:
            self._lock.release()

    def receive(self) -> In:
        """The next frame, waited for. Raises ConnectionLostError at the end."""
        try:
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
            if length > MAX_FRAME_BYTES:
                raise ConnectionLostError(f"a frame of {length} bytes, over {MAX_FRAME_BYTES}")
            return self._decoder.decode(self._read(length))
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise ConnectionLostError(str(error)) from error

    def close(self) -> None:
        """Close the connection; whoever waits at either end is told."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._socket.close()

    def _encoded(self, frame: msgspec.Struct) -> bytes:
        body = self._encoder.encode(frame)
        return _LENGTH.pack(len(body)) + body

    def _send(self, data: bytes) -> None:
        with self._lock:
            try:
                self._socket.sendall(self._unsent + data)
            except OSError as error:
                raise ConnectionLostError(str(error)) from error
            self._unsent = b""

    def _read(self, num_bytes: int) -> bytes:
        while len(self._read_ahead) < num_bytes:
            piece = self._socket.recv(_BUFFER_BYTES)
            if not piece:
                raise ConnectionLostError("the connection was closed")
            self._read_ahead += piece
        data = bytes(memoryview(self._read_ahead)[:num_bytes])
        del self._read_ahead[:num_bytes]
        return data
