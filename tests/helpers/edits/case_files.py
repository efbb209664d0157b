"""Finds the case files of this repository by name, whatever their folder and packing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apply_service.evaluate.cases.case_file import read_lines

_ROOT = Path(__file__).parents[3]
FOLDERS = (_ROOT / "tests" / "cases", _ROOT / "training" / "cases")


def case_file(name: str) -> Path:
    """The file `name.jsonl.gz` of tests or training."""
    paths = (folder / f"{name}.jsonl.gz" for folder in FOLDERS)
    return next(path for path in paths if path.exists())


def read_records(name: str) -> list[dict[str, Any]]:
    """Read a case file's lines as JSON objects."""
    return [json.loads(line) for line in read_lines(case_file(name))]
