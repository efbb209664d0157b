"""Frames over a socket: four bytes of length, then MessagePack."""

from __future__ import annotations

import queue
import socket
import struct
import threading
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

# A prompt of a million tokens takes five megabytes; what is larger is no frame of ours.
MAX_FRAME_BYTES = 256 << 20
_LENGTH = struct.Struct(">I")
_TIMEVAL = struct.Struct("@ll")
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
        self._posting = threading.Lock()
        self._posted: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._num_posted = 0
        self._poster: threading.Thread | None = None
        self._is_closed = False

    def limit_silence(self, limit_s: float) -> None:
        """Have `receive` raise TimeoutError where nothing is read for so long; it may go on."""
        whole_s = int(limit_s)
        microseconds = int(1e6 * (limit_s - whole_s))
        timeval = _TIMEVAL.pack(whole_s, microseconds)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)

    def post(self, frame: msgspec.Struct) -> None:
        """Send a frame without waiting; what has to wait is sent by a thread, in order.

        Raises ConnectionLostError.
        """
        with self._posting:
            if self._is_closed:
                raise ConnectionLostError("the connection was closed")
            if not self._num_posted and self.try_send(frame):
                if not self._unsent:
                    return
                data = b""
            else:
                data = self._encoded(frame)
            self._num_posted += 1
            self._posted.put(data)
            if self._poster is None:
                self._poster = threading.Thread(target=self._send_posted, daemon=True)
                self._poster.start()

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
        """The next frame, waited for. Raises ConnectionLostError at the end.

        Raises TimeoutError as `limit_silence` says.
        """
        try:
            (length,) = _LENGTH.unpack_from(self._read(_LENGTH.size))
            if length > MAX_FRAME_BYTES:
                raise ConnectionLostError(f"a frame of {length} bytes, over {MAX_FRAME_BYTES}")
            end = _LENGTH.size + length
            body = bytes(memoryview(self._read(end))[_LENGTH.size : end])
            del self._read_ahead[:end]
            return self._decoder.decode(body)
        except BlockingIOError as error:
            raise TimeoutError("the other end is silent") from error
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise ConnectionLostError(str(error)) from error

    def close(self) -> None:
        """Close the connection; whoever waits at either end is told."""
        self._is_closed = True
        self._posted.put(None)
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

    def _send_posted(self) -> None:
        while (data := self._posted.get()) is not None:
            with suppress(ConnectionLostError):  # whoever reads from the connection sees it too
                self._send(data)
            with self._posting:
                self._num_posted -= 1

    def _read(self, num_bytes: int) -> bytearray:
        """What was read ahead, which is at least so much."""
        while len(self._read_ahead) < num_bytes:
            piece = self._socket.recv(_BUFFER_BYTES)
            if not piece:
                raise ConnectionLostError("the connection was closed")
            self._read_ahead += piece
        return self._read_ahead
