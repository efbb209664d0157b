"""Stores finished runs of a long bench in a file, so that a restart continues it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from apply_service.apply.errors import ApplyError

Row = TypeVar("Row", bound=msgspec.Struct)


class RunLogError(ApplyError):
    """The file cannot be used, or holds runs of something else."""


class RunLog(Generic[Row]):
    """Rows, one a line, below a line that says what they are of; without a path in memory alone.

    A line that was cut off by the end of a process is dropped.
    """

    def __init__(self, path: Path | None, *, identity: dict[str, Any], row_type: type[Row]) -> None:
        """Read the stored runs. Raises RunLogError if they belong to another identity."""
        self.rows: list[Row] = []
        self._path = path
        if path is None:
            return
        try:
            lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
            whole = [line for line in lines if line.endswith(b"\n")]
            if lines and not whole:
                raise RunLogError(f"{path} has no whole line; name another file, or remove it")
            if whole:
                self._check_identity(whole[0], identity)
            for line in whole[1:]:
                self.rows.append(msgspec.json.decode(line, type=row_type))
            head = [] if whole else [msgspec.json.encode(identity) + b"\n"]
            if len(whole) < len(lines) or head:
                path.write_bytes(b"".join([*whole, *head]))
        except OSError as error:
            raise RunLogError(
                f"{path}: {error.strerror}; name a file that can be written"
            ) from error
        except msgspec.DecodeError as error:
            raise RunLogError(
                f"{path} is not a file of finished runs: {error}; name another"
            ) from error

    def add(self, row: Row) -> None:
        """Keep a finished run."""
        self.rows.append(row)
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(row) + b"\n")

    def _check_identity(self, line: bytes, identity: dict[str, Any]) -> None:
        found = msgspec.json.decode(line)
        wanted = msgspec.to_builtins(identity)
        if found == wanted:
            return
        known = found if isinstance(found, dict) else {}
        names = [name for name in wanted if known.get(name) != wanted[name]] or ["its first line"]
        name = names[0]
        raise RunLogError(
            f"{self._path} holds runs of another kind: {name} is {known.get(name)!r} there and"
            f" {wanted.get(name)!r} now; name another file, or remove it"
        )
