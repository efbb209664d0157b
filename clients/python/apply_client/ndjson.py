"""Lines of JSON out of bytes that come in pieces."""

from __future__ import annotations

from apply_client.errors import InvalidResponseError

MAX_LINE_BYTES = 64 << 20


class NdjsonLines:
    """Takes pieces cut anywhere; gives each line once its newline has come. Empty ones are none."""

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes. Raises InvalidResponseError for an endless one."""
        *complete, rest = piece.split(b"\n")
        lines = []
        for part in complete:
            lines.append(bytes(self._buffer) + part)
            self._buffer.clear()
        self._buffer += rest
        if len(self._buffer) > self._max_line_bytes:
            raise InvalidResponseError(
                f"a line has {len(self._buffer)} bytes and goes on, the limit is"
                f" {self._max_line_bytes}; the answer is none of this API"
            )
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """The last line, if the stream ended without a newline behind it."""
        line = bytes(self._buffer)
        self._buffer.clear()
        return [line] if line.strip() else []
