"""Case files: one edit a line as a JSON object, with the answer that is expected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from apply_service.apply.errors import ApplyError


class CaseFileError(ApplyError):
    """A case file cannot be read, or `line_number` of it (from 1) is not a case."""

    def __init__(self, message: str, *, line_number: int | None = None) -> None:
        super().__init__(message)
        self.line_number = line_number


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One edit with its answer. Keys of the line that are not named here are ignored.

    `original`, `update` and `expected` are whole texts. `style` says how the update was written;
    figures are reported by it. `must_refuse` marks an update that has no right answer: it is to be
    refused or flagged.
    """

    id: str
    path: str
    original: str
    update: str
    expected: str
    instruction: str | None = None
    style: str | None = None
    language: str | None = None
    must_refuse: bool = False


_DECODER = msgspec.json.Decoder(Case)
_TEXT_FIELDS = ("original", "update", "expected", "instruction")


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file in order; blank lines are skipped.

    Raises `CaseFileError` at the first line that is not a case, or if the file cannot be read.
    """
    try:
        with path.open("rb") as lines:
            for line_number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _parse_case(line, path, line_number)
    except OSError as error:
        raise CaseFileError(f"{path}: cannot be read: {error.strerror or error}") from error


def _parse_case(line: bytes, path: Path, line_number: int) -> Case:
    try:
        case = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _line_error(str(error), path, line_number) from error
    for name in _TEXT_FIELDS:
        text = getattr(case, name)
        if text is not None and "\0" in text:
            raise _line_error(f"`{name}` has a NUL, so it is not text", path, line_number)
    return case


def _line_error(reason: str, path: Path, line_number: int) -> CaseFileError:
    return CaseFileError(
        f"{path}: line {line_number} is not a case: {reason}; each line must be a JSON object"
        " with the texts id, path, original, update and expected",
        line_number=line_number,
    )
