"""Reads server-sent events from bytes that come in pieces."""

from __future__ import annotations

from dataclasses import dataclass

from apply_client.errors import InvalidResponseError

MAX_EVENT_BYTES = 64 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event of the HTML standard; an event without a name is a `message`."""

    name: str
    content: bytes


class SseParser:
    """Parses pieces cut anywhere; gives each event once its empty line has come.

    An event that is not complete when the stream ends is none.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._lines = SseLines(max_line_bytes=max_event_bytes)
        self._name = b""
        self._content: list[bytes] = []
        self._num_bytes = 0

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """The events that this piece completes. Raises InvalidResponseError for an endless one."""
        events = []
        for line in self._lines.feed(piece):
            event = self._take_line(line)
            if event is not None:
                events.append(event)
        return events

    def _take_line(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._take_event()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value
        elif field == b"data":
            self._content.append(value)
            self._num_bytes += len(value)
            _check_size(self._num_bytes, self._max_event_bytes)
        return None

    def _take_event(self) -> ServerSentEvent | None:
        """The event that an empty line ends; without `data` there is none."""
        name, content = self._name or b"message", self._content
        self._name, self._content, self._num_bytes = b"", [], 0
        if not content:
            return None
        return ServerSentEvent(name.decode("utf-8", "replace"), b"\n".join(content))


class SseLines:
    """Splits pieces cut anywhere at LF, CR or CRLF; drops a byte-order mark at the start."""

    def __init__(self, *, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._buffer = bytearray()
        self._num_searched = 0
        self._is_at_start = True
        self._skips_newline = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes, without their ends."""
        self._buffer += piece
        if self._is_at_start and not self._drop_mark():
            return []
        lines = []
        while (line := self._try_line()) is not None:
            lines.append(line)
        _check_size(len(self._buffer), self._max_line_bytes)
        return lines

    def _drop_mark(self) -> bool:
        """Drop a byte-order mark; False while it cannot be told whether there is one."""
        if len(self._buffer) < 3 and _BYTE_ORDER_MARK.startswith(self._buffer):
            return False
        if self._buffer.startswith(_BYTE_ORDER_MARK):
            del self._buffer[:3]
        self._is_at_start = False
        return True

    def _try_line(self) -> bytes | None:
        if self._skips_newline and self._buffer:
            if self._buffer[0] == 0x0A:
                del self._buffer[:1]
            self._skips_newline = False
        ends = [self._buffer.find(end, self._num_searched) for end in (b"\n", b"\r")]
        found = [end for end in ends if end >= 0]
        if not found:
            self._num_searched = len(self._buffer)
            return None
        end = min(found)
        line = bytes(self._buffer[:end])
        self._skips_newline = self._buffer[end] == 0x0D
        del self._buffer[: end + 1]
        self._num_searched = 0
        return line


def _check_size(num_bytes: int, limit: int) -> None:
    if num_bytes > limit:
        raise InvalidResponseError(
            f"an event has {num_bytes} bytes and goes on, the limit is {limit}; the answer is none"
            " of this API"
        )
