"""Case files: one edit a line as a JSON object, with the answer that is expected.

A file whose name ends in `.gz` is read through gzip.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from apply_service.apply.errors import ApplyError


class CaseFileError(ApplyError):
    """A case file cannot be read, or `line_number` of it (from 1) is not a case."""

    def __init__(self, message: str, *, line_number: int | None = None) -> None:
        super().__init__(message)
        self.line_number = line_number


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One edit with its answer. Keys of the line that are not named here are ignored.

    `original`, `update` and `expected` are whole texts; those in `also` are as right as `expected`.
    `style` says how the update was written; figures are reported by it. `must_refuse` marks an
    update that has no right answer: it is to be refused or flagged. With `also` it has several, and
    the caller must be asked. `package` is where the file is from.
    """

    id: str
    path: str
    original: str
    update: str
    expected: str
    also: tuple[str, ...] = ()
    instruction: str | None = None
    style: str | None = None
    language: str | None = None
    must_refuse: bool = False
    package: str | None = None

    @property
    def results(self) -> tuple[str, ...]:
        """All texts that are right, or all readings if the caller must be asked."""
        return (self.expected, *self.also)


_DECODER = msgspec.json.Decoder(Case)
_TEXT_FIELDS = ("original", "update", "expected", "instruction")


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file in order; blank lines are skipped.

    Raises `CaseFileError` at the first line that is not a case, or if the file cannot be read.
    """
    for line_number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield _parse_case(line, path, line_number)


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, unpacked if its name ends in `.gz`. Raises `CaseFileError`."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise CaseFileError(f"{path}: cannot be read: {reason}") from error


def _parse_case(line: bytes, path: Path, line_number: int) -> Case:
    try:
        case = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _line_error(str(error), path, line_number) from error
    texts = [(name, getattr(case, name)) for name in _TEXT_FIELDS]
    for name, text in (*texts, *(("also", text) for text in case.also)):
        if text is not None and "\0" in text:
            raise _line_error(f"`{name}` has a NUL, so it is not text", path, line_number)
    return case


def _line_error(reason: str, path: Path, line_number: int) -> CaseFileError:
    return CaseFileError(
        f"{path}: line {line_number} is not a case: {reason}; each line must be a JSON object"
        " with the texts id, path, original, update and expected",
        line_number=line_number,
    )
