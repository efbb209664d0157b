"""A text file taken apart without loss: lines, encoding, line endings and final newline.

TextFileError ← BinaryFileError, LoneSurrogateError, EncodingLostError
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.edit.text.alignment import matching_blocks

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"]

BINARY_PROBE_BYTES = 8192

# UTF-32 little endian begins with the mark of UTF-16 little endian, so it is tried first.
_WIDE_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class TextFileError(Exception):
    """Base of the errors of a text that is read or written."""


class BinaryFileError(TextFileError):
    """The input is not a text file."""


class LoneSurrogateError(TextFileError):
    """The text holds half of a surrogate pair, which no encoding can store."""


class EncodingLostError(TextFileError):
    """The result has a character that the file's own encoding cannot hold."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """Lines split at "\\n" alone, with everything needed to write the same bytes again.

    `lines` hold neither "\\n" nor the CR of a CRLF; a lone CR is text. `has_cr[i]` says whether
    line i ended in CRLF. An empty file has no lines; the last line may lack its newline.
    """

    lines: tuple[str, ...]
    has_cr: tuple[bool, ...]
    has_final_newline: bool
    encoding: Encoding = "utf-8"
    byte_order_mark: bytes = b""

    @classmethod
    def from_bytes(cls, content: bytes) -> TextFile:
        """Decode a file. Raises BinaryFileError for NUL in its first 8 KiB outside UTF-16/32."""
        for mark, encoding in _WIDE_MARKS:
            text = _try_decode(content[len(mark) :], encoding) if content.startswith(mark) else None
            if text is not None:
                return cls._from_decoded(text, encoding, mark)
        check_not_binary(content)
        mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        text = _try_decode(content[len(mark) :], "utf-8")
        if text is not None:
            return cls._from_decoded(text, "utf-8", mark)
        return cls._from_decoded(content.decode("latin-1"), "latin-1", b"")

    @classmethod
    def from_text(cls, text: str) -> TextFile:
        """Take text that is already decoded, such as a JSON string.

        Raises LoneSurrogateError with the position, BinaryFileError as `from_bytes` does.
        """
        check_no_lone_surrogate(text, name="the text")
        check_not_binary(text[:BINARY_PROBE_BYTES].encode())
        return cls._from_decoded(text, "utf-8", b"")

    @classmethod
    def _from_decoded(cls, text: str, encoding: Encoding, mark: bytes) -> TextFile:
        lines, has_final_newline = split_lines(text)
        num_ended = len(lines) if has_final_newline else len(lines) - 1
        has_cr = [index < num_ended and line.endswith("\r") for index, line in enumerate(lines)]
        if any(has_cr):
            lines = [
                line[:-1] if is_crlf else line for line, is_crlf in zip(lines, has_cr, strict=True)
            ]
        return cls(tuple(lines), tuple(has_cr), has_final_newline, encoding, mark)

    def decode(self) -> str:
        """The file as text with its own line endings, without the byte order mark."""
        return self.join(self.lines)

    def join(self, lines: Sequence[str]) -> str:
        """The text of an edited version: kept lines keep their ending, new ones take a neighbour's.

        The final newline is the file's own; an empty file gets one when lines are added.
        """
        kept = len(lines) == len(self.lines) and tuple(lines) == self.lines
        has_cr = self.has_cr if kept else self._align_endings(lines)
        has_final_newline = self.has_final_newline or not self.lines
        return _join(lines, has_cr, has_final_newline=has_final_newline and bool(lines))

    def encode(self, lines: Sequence[str]) -> bytes:
        """The bytes of an edited version. Raises EncodingLostError, LoneSurrogateError."""
        text = self.join(lines)
        check_no_lone_surrogate(text, name="the result")
        try:
            return self.byte_order_mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            character = text[error.start]
            raise EncodingLostError(
                f"line {line} of the result has U+{ord(character):04X}, but the file's encoding"
                f" {self.encoding} cannot hold it; convert the file to UTF-8, or leave the"
                " character out"
            ) from error

    def _align_endings(self, lines: Sequence[str]) -> Sequence[bool]:
        """One flag a line of an edited version: true if it ends in CRLF."""
        num_ended = len(self.lines) if self.has_final_newline else len(self.lines) - 1
        endings = Counter(self.has_cr[: max(num_ended, 0)])
        dominant = endings[True] > endings[False]
        if len(endings) <= 1:
            return [dominant] * len(lines)
        has_cr: list[bool | None] = [None] * len(lines)
        for block in matching_blocks(self.lines, lines):
            for offset in range(block.length):
                if block.old_start + offset < num_ended:
                    has_cr[block.new_start + offset] = self.has_cr[block.old_start + offset]
        return _fill_from_neighbour(has_cr, dominant)


def split_lines(text: str) -> tuple[list[str], bool]:
    """Split at "\\n" only, and say if the last line is ended: "" has no line, "\\n" one."""
    if not text:
        return [], False
    has_final_newline = text.endswith("\n")
    return (text[:-1] if has_final_newline else text).split("\n"), has_final_newline


def check_not_binary(content: bytes) -> None:
    """Raise BinaryFileError if the first 8 KiB contain NUL."""
    position = content.find(b"\0", 0, BINARY_PROBE_BYTES)
    if position >= 0:
        raise BinaryFileError(
            f"NUL at byte {position} makes the file binary; a text file has none in its first"
            f" {BINARY_PROBE_BYTES} bytes (UTF-16 and UTF-32 need a byte order mark); send a text"
            " file"
        )


def check_no_lone_surrogate(text: str, *, name: str) -> None:
    """Raise LoneSurrogateError with the position of the first lone surrogate of `text`."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise LoneSurrogateError(
            f"{name} has the lone surrogate U+{ord(text[error.start]):04X} at character"
            f" {error.start} (line {line}); send whole code points, or the file's bytes as"
            ' {"base64": …}'
        ) from error


def _try_decode(content: bytes, encoding: Encoding) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _fill_from_neighbour(has_cr: Sequence[bool | None], dominant: bool) -> list[bool]:
    """Give lines without an ending one: of the line before, else after, else the dominant."""
    following = next((ending for ending in has_cr if ending is not None), dominant)
    filled: list[bool] = []
    for ending in has_cr:
        following = following if ending is None else ending
        filled.append(following)
    return filled


def _join(lines: Sequence[str], has_cr: Sequence[bool], *, has_final_newline: bool) -> str:
    if not any(has_cr):
        return "\n".join(lines) + ("\n" if has_final_newline else "")
    parts = [
        line + ("\r\n" if is_crlf else "\n") for line, is_crlf in zip(lines, has_cr, strict=True)
    ]
    if not has_final_newline:
        parts[-1] = lines[-1]
    return "".join(parts)
