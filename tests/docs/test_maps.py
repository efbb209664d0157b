"""The docstring of each `__init__` is a map: it names every module beside it, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = (
    *("apply_service", "batching", "kernels", "lookup", "snippets", "benchmarks", "training"),
    "clients/python/apply_client",
)
MAX_LINES = 10
# Words in backticks that name no module.
OTHER_NAMES = {"apply_client", "apply_service"}


def maps() -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("__init__.py"))


def modules_of(folder: Path) -> set[str]:
    """The names of modules and packages in a folder."""
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


@pytest.fixture(scope="module")
def every_name() -> set[str]:
    rooms = (ROOT / room for room in ROOMS)
    folders = {path.parent for room in rooms for path in room.rglob("*.py")}
    names = {name for folder in folders for name in modules_of(folder)}
    return names | {folder.name for folder in folders} | OTHER_NAMES


@pytest.mark.parametrize("path", list(maps()), ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_map_names_its_modules_and_no_others(path: Path, every_name: set[str]) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""

    named = re.findall(r"[\w*]+", text)
    unnamed = {
        one for one in modules_of(path.parent) if not any(fnmatchcase(one, it) for it in named)
    }
    assert unnamed == set()
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text)) - every_name == set()
    assert len(text.splitlines()) <= MAX_LINES
