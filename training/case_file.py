"""Training and test cases on disk: one JSON object a line, as `apply-service bench` reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A real edit and the lazy update that was written for it."""

    id: str
    path: str
    language: str
    package: str
    original: str
    update: str
    expected: str
    style: str
    generator_version: int


def document_lines(text: str) -> list[str]:
    """The lines of a document; its final newline is not among them."""
    return text.removesuffix("\n").split("\n") if text else []


def write_cases(path: Path, cases: Iterable[TrainingCase]) -> int:
    """Write all cases, then put the file in place; how many they were."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    num_cases = 0
    with partial.open("w", encoding="utf-8") as file:
        for case in cases:
            file.write(json.dumps(asdict(case), ensure_ascii=True) + "\n")
            num_cases += 1
    partial.replace(path)
    return num_cases


def read_training_cases(path: Path) -> Iterator[TrainingCase]:
    """The cases that `write_cases` wrote."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield TrainingCase(**json.loads(line))
