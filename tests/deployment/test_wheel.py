"""The wheel holds what a user runs, and nothing that only this project needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"apply_service", "batching", "kernels", "lookup", "snippets"}
# The adapter's weights are nearly all of it; the page has 0.8 MB.
MAX_BYTES = 11_500_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return path


def test_it_has_the_packages_and_nothing_else(wheel: Path) -> None:
    paths = [PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()]
    folders = {path.parts[0] for path in paths}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == PACKAGES
    assert not [path for path in paths if path.suffix in {".jsonl", ".gz", ".png"}]


def test_it_has_every_file_of_these(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    for package in PACKAGES:
        files = (path for path in (ROOT / package).rglob("*") if path.is_file())
        missing = {path.relative_to(ROOT).as_posix() for path in files} - packed
        assert not {name for name in missing if "__pycache__" not in name}


def test_it_is_not_larger_than_its_weights_and_page_make_it(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES
