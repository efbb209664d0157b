"""A stream in the place of stderr that nobody waits for: a thread writes what there is."""

from __future__ import annotations

import atexit
import io
import logging
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Self, TextIO

_LOGGER = logging.getLogger(__name__)

# What waits for a reader: some two hundred lines.
_MAX_BYTES = 64 << 10
# At the end the reader has so long to take what is left.
_END_S = 2.0


class LogStream(io.TextIOBase):
    """Takes text from any thread, without waiting, and hands it to a thread that writes it.

    While nobody reads, text that finds no room is dropped. How many lines that were is logged once,
    when what did find room has been read.
    """

    def __init__(self, stream: TextIO, *, max_bytes: int = _MAX_BYTES) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        # Reentrant: a signal's handler may log while its thread is in here.
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[bytes] = deque()
        self._num_bytes = 0
        self._num_untold = 0
        self._num_dropped = 0
        self._is_idle = True
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @classmethod
    def replace_stderr(cls) -> Self | None:
        """Take the place of stderr until the process ends; None if something else has it."""
        stream = sys.__stderr__
        if stream is None or sys.stderr is not stream:
            return None
        stream.flush()
        taken = sys.stderr = cls(stream)
        atexit.register(drain_stderr)
        return taken

    @property
    def num_dropped(self) -> int:
        """Lines that were dropped so far."""
        return self._num_dropped

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of all text."""
        return "utf-8"

    def write(self, text: str, /) -> int:
        """Take text, or drop it."""
        data = text.encode("utf-8", "backslashreplace")
        if not data:
            return 0
        with self._changed:
            if self._waiting and self._num_bytes + len(data) > self._max_bytes:
                self._num_dropped += text.count("\n")
                self._num_untold += text.count("\n")
            else:
                self._waiting.append(data)
                self._num_bytes += len(data)
                self._is_idle = False
                self._changed.notify_all()
        return len(text)

    def drain(self, limit_s: float) -> None:
        """Wait until all is written, for `limit_s` seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_idle, limit_s)

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """As the stream says."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The file that is written to."""
        return self._stream.fileno()

    def _run(self) -> None:
        while True:
            data, num_dropped = self._next()
            if data:
                self._write_all(data)
            else:
                _LOGGER.error("%d lines of the log were dropped: nobody read it", num_dropped)

    def _next(self) -> tuple[bytes, int]:
        """What to write next, whole texts of a pipe's atomic size; else how many lines to tell."""
        with self._changed:
            while not self._waiting and not self._num_untold:
                self._is_idle = True
                self._changed.notify_all()
                self._changed.wait()
            data = b""
            while self._waiting and (
                not data or len(data) + len(self._waiting[0]) <= select.PIPE_BUF
            ):
                data += self._waiting.popleft()
            self._num_bytes -= len(data)
            num_untold = self._num_untold
            if not data:
                self._num_untold = 0
            return data, num_untold

    def _write_all(self, data: bytes) -> None:
        """Write past the stream's own buffer, whose lock would hold up the end of the process."""
        with suppress(OSError):  # nobody will read it any more
            while data:
                try:
                    data = data[os.write(self.fileno(), data) :]
                except BlockingIOError:  # another process has made the pipe so
                    select.select((), (self.fileno(),), ())


def drain_stderr() -> None:
    """Wait until what was logged is written, for two seconds at most: the process ends."""
    if isinstance(sys.stderr, LogStream):
        sys.stderr.drain(_END_S)
