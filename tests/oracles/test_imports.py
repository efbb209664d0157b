"""Oracles that are run by hand find what they import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
MODULES = [
    f"oracles.{path.parent.name}.{path.stem}"
    for path in sorted(FOLDER.glob("*/*.py"))
    if "__main__" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_an_oracle_can_be_imported(name: str) -> None:
    importlib.import_module(name)
