"""A text file taken apart without loss: lines, encoding, line endings and final newline.

TextFileError ← BinaryFileError, LoneSurrogateError, EncodingLostError
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Literal

from rapidfuzz.distance.Indel import normalized_similarity as ratio

from apply_service.edit.text.alignment import Block, matching_blocks

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"]

BINARY_PROBE_BYTES = 8192
# U+FEFF, which some editors put in front of a text.
MARK = "\ufeff"
# An edited line is the next version of an old one from this likeness on, by characters.
MIN_LIKENESS = 0.6
# Larger gaps between equal lines are not searched for alike lines.
MAX_GAP_CELLS = 10_000

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
    """Lines without their endings, with everything needed to write the same bytes again.

    `endings[i]` ends line i: "\\n", "\\r\\n", or "\\r" in a file without "\\n"; elsewhere a lone CR
    is text. The last one is "" if the file has no final newline. An empty file has no lines.
    `byte_order_mark` precedes the bytes; `text_mark` is the U+FEFF that a decoded text began with.
    """

    lines: tuple[str, ...]
    endings: tuple[str, ...]
    encoding: Encoding = "utf-8"
    byte_order_mark: bytes = b""
    text_mark: str = ""

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
        rest = text.removeprefix(MARK)
        file = cls._from_decoded(rest, "utf-8", b"")
        return file if len(rest) == len(text) else replace(file, text_mark=MARK)

    @classmethod
    def _from_decoded(cls, text: str, encoding: Encoding, mark: bytes) -> TextFile:
        newline = "\r" if "\r" in text and "\n" not in text else "\n"
        lines, has_final_newline = split_lines(text, newline)
        endings = [newline] * len(lines)
        if lines and not has_final_newline:
            endings[-1] = ""
        if "\r\n" in text:
            for place, line in enumerate(lines):
                if line.endswith("\r") and endings[place]:
                    lines[place], endings[place] = line[:-1], "\r\n"
        return cls(tuple(lines), tuple(endings), encoding, mark)

    def decode(self) -> str:
        """The file as text with its own line endings, without the byte order mark of its bytes."""
        return self.join(self.lines)

    def join(self, lines: Sequence[str]) -> str:
        """The text of an edited version.

        Kept lines, and those replaced one for one, keep their ending; new ones take a neighbour's.
        The final newline is the file's own; an empty file gets one when lines are added.
        """
        kept = len(lines) == len(self.lines) and tuple(lines) == self.lines
        endings = self.endings if kept else self._align_endings(lines)
        return self.text_mark + "".join(map(add, lines, endings))

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

    def _align_endings(self, lines: Sequence[str]) -> list[str]:
        """The endings of an edited version."""
        counts = Counter(ending for ending in self.endings if ending)
        usual = max(counts, key=lambda ending: counts[ending], default="\n")
        endings = [usual] * len(lines)
        if len(counts) > 1:
            known: list[str] = [""] * len(lines)
            for old, new in _paired_lines(self.lines, lines):
                known[new] = self.endings[old]
            # A new line ends as the line before it does, else as the one after it.
            following = next(filter(None, known), usual)
            endings = [following := ending or following for ending in known]
        if lines and self.lines and not self.endings[-1]:
            endings[-1] = ""
        return endings


def split_lines(text: str, newline: str = "\n") -> tuple[list[str], bool]:
    """Split at `newline` only, and say if the last line is ended: "" has no line, "\\n" one."""
    if not text:
        return [], False
    has_final_newline = text.endswith(newline)
    return (text[:-1] if has_final_newline else text).split(newline), has_final_newline


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


def _paired_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of equal lines, and of lines that were replaced one for one or are alike."""
    blocks = [*matching_blocks(old, new), Block(len(old), len(new), 0)]
    old_end = new_end = 0
    for block in blocks:
        num_old, num_new = block.old_start - old_end, block.new_start - new_end
        if num_old == num_new:
            yield from zip(
                range(old_end, block.old_start), range(new_end, block.new_start), strict=True
            )
        elif num_old * num_new <= MAX_GAP_CELLS:
            yield from _alike_lines(
                old, new, range(old_end, block.old_start), range(new_end, block.new_start)
            )
        for step in range(block.length):
            yield block.old_start + step, block.new_start + step
        old_end, new_end = block.old_start + block.length, block.new_start + block.length


def _alike_lines(
    old: Sequence[str], new: Sequence[str], old_places: range, new_places: range
) -> Iterator[tuple[int, int]]:
    """Pairs of alike lines in order, each old line with the first new one that is like it."""
    free = new_places
    for place in old_places:
        pair = next((one for one in free if ratio(old[place], new[one]) >= MIN_LIKENESS), None)
        if pair is not None:
            yield place, pair
            free = range(pair + 1, new_places.stop)
