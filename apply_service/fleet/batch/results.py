"""The results of a batch in a folder: a file for each slice, and one of all at the end.

A part is named by the hash of its edits' keys, and is written whole or not at all. So whoever does
a slice again finds its part, or writes the same one; what has changed is done anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from apply_service.fleet.batch.edit import Edit

RESULTS = "results.jsonl"
_PARTS = "parts"


class EditResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an edit: a status of the verdict, or `failed` with its problem.

    It has nothing that differs from run to run.
    """

    key: str
    id: str
    status: str
    path: str | None = None
    merged: Any = None
    source: str | None = None
    findings: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = []
    problem: dict[str, Any] | None = None


def part_name(edits: Sequence[Edit]) -> str:
    """The name of the part with the results of these edits."""
    keys = "".join(edit.key for edit in edits)
    return f"{hashlib.sha256(keys.encode()).hexdigest()[:32]}.jsonl"


class ResultFolder:
    """A folder that may be shared by several machines."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self) -> None:
        """Make the folder, if it is not there."""
        (self._path / _PARTS).mkdir(parents=True, exist_ok=True)

    def has(self, part: str) -> bool:
        """True if the part is written."""
        return (self._path / _PARTS / part).exists()

    def write(self, part: str, results: Iterable[EditResult]) -> None:
        """Write a part, whole and synced; one that is there is replaced by its equal."""
        content = b"".join(msgspec.json.encode(one) + b"\n" for one in results)
        _write(self._path / _PARTS / part, [content])

    def finish(self, parts: Sequence[str]) -> Mapping[str, int]:
        """Join the parts in order, each key once, and drop them; results by their status."""
        counts: Counter[str] = Counter()
        _write(self._path / RESULTS, self._lines(parts, counts))
        for path in (self._path / _PARTS).iterdir():
            if path.name not in parts or path.suffix != ".jsonl":
                path.unlink()  # of files that have changed since, or of a writer that was killed
        return counts

    def _lines(self, parts: Sequence[str], counts: Counter[str]) -> Iterable[bytes]:
        seen: set[bytes] = set()
        for part in parts:
            with (self._path / _PARTS / part).open("rb") as stream:
                for line in stream:
                    result = msgspec.json.decode(line, type=EditResult)
                    key = bytes.fromhex(result.key)
                    if key not in seen:
                        seen.add(key)
                        counts[result.status] += 1
                        yield line


def _write(path: Path, lines: Iterable[bytes]) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    with os.fdopen(descriptor, "wb") as stream:
        for line in lines:
            stream.write(line)
        stream.flush()
        os.fsync(stream.fileno())
    Path(name).replace(path)
