"""Reads HTTP/1.1 strictly: refuses requests that a proxy could read in another way.

Of what h11 lets pass this refuses all by which a proxy in front may see other borders between
requests than the server does (RFC 9112, sections 2.2, 5.2 and 6.1).
"""

from __future__ import annotations

import re
from typing import Any

import h11

# A line that ends in LF alone, and one that goes on in the next.
_LOOSE_END = re.compile(rb"(?<!\r)\n")
_FOLD = re.compile(rb"\n[ \t]")
_MAX_REASON_CHARS = 200
# A body in crumbs costs thousands of times what its bytes do; so many chunks must have some bytes.
_MAX_CRUMBS = 10_000
_MIN_CHUNK_BYTES = 16


class StrictConnection(h11.Connection):
    """The server's side of a connection; `flaw` says why it raised RemoteProtocolError."""

    def __init__(self, *, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_head_bytes)
        self._max_head_bytes = max_head_bytes
        self._received = b""
        self._num_chunks = 0
        self._num_body_bytes = 0
        self.flaw = ""

    def receive_data(self, data: bytes) -> None:
        """As in h11; keeps a copy of unread bytes to check their line endings."""
        unread = len(self._receive_buffer)
        self._received = self._received[len(self._received) - unread :] + data
        super().receive_data(data)

    def next_event(self) -> Any:
        """As in h11, which exports no type for most events."""
        before = len(self._receive_buffer)
        try:
            event = super().next_event()
            if isinstance(event, h11.Request | h11.EndOfMessage):
                end = len(self._received)
                start, end = end - before, end - len(self._receive_buffer)
                self._check_lines(self._received[start:end])
            if isinstance(event, h11.Request):
                _check_framing(event)
                self._num_chunks = self._num_body_bytes = 0
            if isinstance(event, h11.Data):
                self._check_chunks(event)
            if not len(self._receive_buffer):
                self._received = b""
        except h11.RemoteProtocolError as error:
            self.flaw = str(error)[:_MAX_REASON_CHARS]
            raise
        return event

    def _check_lines(self, read: bytes) -> None:
        """Raise RemoteProtocolError for a head, or the end of a body, that is not by the rules."""
        if len(read) > self._max_head_bytes:  # h11 looks at those alone that come in pieces
            limit = f"the limit is {self._max_head_bytes}"
            raise h11.RemoteProtocolError(f"the head has {len(read)} bytes, {limit}")
        if _LOOSE_END.search(read):
            raise h11.RemoteProtocolError("a line ends in LF without CR before it")
        if _FOLD.search(read):
            raise h11.RemoteProtocolError("a header continues on a second line")

    def _check_chunks(self, data: h11.Data) -> None:
        """Raise RemoteProtocolError for a body in very many and very small chunks."""
        self._num_chunks += data.chunk_end
        self._num_body_bytes += len(data.data)
        is_long = self._num_chunks > _MAX_CRUMBS
        if is_long and self._num_body_bytes < _MIN_CHUNK_BYTES * self._num_chunks:
            raise h11.RemoteProtocolError(
                f"the body has {self._num_chunks} chunks or more of less than {_MIN_CHUNK_BYTES}"
                " bytes on average"
            )


def _check_framing(request: h11.Request) -> None:
    """Raise RemoteProtocolError for a body with two lengths, or one that the version lacks."""
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" not in names:
        return
    if b"content-length" in names:
        raise h11.RemoteProtocolError("the head has both Content-Length and Transfer-Encoding")
    if request.http_version < b"1.1":
        raise h11.RemoteProtocolError("HTTP/1.0 has no Transfer-Encoding")
