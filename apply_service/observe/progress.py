"""Shows the progress of long work in one line, on a terminal only."""

from __future__ import annotations

import os
from typing import TextIO

_CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Shows stages and written lines on a terminal, and cleans up after itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._has_line = False
        self._num_lines = 0

    def show_stage(self, stage: str) -> None:
        """Say what is being done now."""
        self._write(f"{stage} …")

    def show_text(self, text: str) -> None:
        """Count the lines of the answer while they come in."""
        self._num_lines += text.count("\n")
        self._write(f"writing line {self._num_lines + 1}")

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        if self._has_line:
            self._write("")

    def _write(self, text: str) -> None:
        if self._is_shown:
            self._stream.write(_CLEAR_LINE + text)
            self._stream.flush()
            self._has_line = bool(text)
