"""One task: a file, an update of it, and what a system must make of the two.

BenchError: anything that a user can mend; its message says how.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

Dialect = Literal["markers", "search_replace", "diff", "hashline", "whole_file"]
Treatment = Literal["apply", "ask", "refuse"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
# Text that only this benchmark's files hold. A model that can complete it has seen them.
CANARY = "lazy-edit-bench canary 7c1f0a52-9d0e-4b1e-8a37-5f6f3d2b9c84: keep out of training data"


class BenchError(Exception):
    """A file, name or setting that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """An edit before it is put into dialects. `update` is the one with markers, if there is one.

    `results` has the right text and others that are as right; for `ask` all readings.
    `form` is the dialect of `update`. `source` names the file's package, or is empty for files that
    were written for the purpose.
    """

    id: str
    path: str
    original: str
    results: tuple[str, ...]
    update: str | None = None
    form: Dialect = "markers"
    treat: Treatment = "apply"
    trap: str = ""
    instruction: str = ""
    made_by: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a system gets (`path`, `original`, `update`, `instruction`) and what it is judged by.

    `results` are all texts that are right if `treat` is `apply`, all readings if it is `ask`. A
    task to refuse may have results too: whoever can still apply the edit does no harm.
    `checked` says who confirmed the result; `encoding` is how the file lies on the disk.
    """

    id: str
    language: str
    kind: str
    dialect: Dialect
    treat: Treatment
    path: str
    instruction: str
    original: str
    update: str
    results: tuple[str, ...]
    trap: str = ""
    encoding: str = "utf-8"
    made_by: str = ""
    source: str = ""
    checked: str = ""

    @property
    def expected(self) -> str | None:
        """The first right text, where there is one."""
        return self.results[0] if self.results else None

    @property
    def size(self) -> str:
        """The class of the file's length."""
        num_lines = self.original.count("\n") + 1
        for limit in (50, 150, 400, 1500):
            if num_lines <= limit:
                return f"≤ {limit} lines"
        return "> 1500 lines"


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, unpacked if its name ends in `.xz`; a canary line is skipped."""
    try:
        with (
            lzma.open(path, "rt", encoding="utf-8")
            if path.suffix == ".xz"
            else path.open(encoding="utf-8") as lines
        ):
            for line in lines:
                if line.strip():
                    read = json.loads(line)
                    if "canary" not in read:
                        yield read
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise BenchError(f"{path} cannot be read as JSON lines ({error})") from error


def write_jsonl(path: Path, records: Iterable[Any]) -> None:
    """Write dataclasses or objects below the canary; equal records give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"canary": CANARY})]
    for record in records:
        plain = record if isinstance(record, dict) else without_defaults(record)
        lines.append(json.dumps(plain, ensure_ascii=False))
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(lzma.compress(text, preset=9) if path.suffix == ".xz" else text)


def without_defaults(record: Any) -> dict[str, Any]:
    """A dataclass as an object without the members that have their default."""
    defaults = {field.name: field.default for field in fields(record)}
    return {name: value for name, value in asdict(record).items() if value != defaults[name]}


def read_edits(path: Path) -> list[Edit]:
    """The edits of a file that `write_jsonl` wrote."""
    return [Edit(**{**plain, "results": tuple(plain["results"])}) for plain in read_jsonl(path)]


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a file that `write_jsonl` wrote."""
    try:
        return [Task(**{**plain, "results": tuple(plain["results"])}) for plain in read_jsonl(path)]
    except (TypeError, KeyError) as error:
        raise BenchError(f"{path} is no file of tasks ({error}); write one with `build`") from error
