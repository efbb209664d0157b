"""`python -m benchmarks weight`: what a clone of this repository and its wheel weigh.

The clone is made anew with `git clone --depth 1`, so only what is committed counts. Sizes are in
MB of 1,000,000 bytes: the history as packed by git, the files by folder, and the largest files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from apply_service.apply.errors import UsageError
from apply_service.cli.suggesting_parser import positive_int

ROOT = Path(__file__).parents[2]


def add_weight_command(subparsers: Any) -> None:
    """Register `weight` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "weight", help="what a clone and the wheel weigh", description=__doc__
    )
    parser.add_argument("--largest", type=positive_int, default=10, help="files to list")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")


def run_weight(args: argparse.Namespace) -> int:
    """Clone, build and print; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        clone = clone_of(args.root, Path(folder))
        sizes = file_sizes(clone)
        print(f"history, one commit deep  {megabytes(history_bytes(clone))}")
        print(f"files                     {megabytes(sum(sizes.values()))}")
        print(f"wheel                     {megabytes(wheel_bytes(clone))}")
    by_folder: Counter[str] = Counter()
    for path, size in sizes.items():
        by_folder[path.parts[0] if len(path.parts) > 1 else "."] += size
    print("\nby folder")
    for name, size in by_folder.most_common():
        print(f"  {name:<24}{megabytes(size)}")
    print("\nlargest files")
    for path, size in Counter(sizes).most_common(args.largest):
        print(f"  {path!s:<60}{megabytes(size)}")
    return 0


def clone_of(root: Path, folder: Path) -> Path:
    """The last commit of a checkout, cloned one commit deep into `folder`. Raises UsageError."""
    if not (root / ".git").exists():
        raise UsageError(f"{root} is not a git checkout; name the folder of one")
    clone = folder / "clone"
    source = root.resolve().as_uri()
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, str(clone)], check=True)
    return clone


def file_sizes(clone: Path) -> dict[Path, int]:
    """Bytes of each committed file, by its path in the clone."""
    files = (path for path in clone.rglob("*") if path.is_file() and not path.is_symlink())
    found = {path.relative_to(clone): path.stat().st_size for path in files}
    return {path: size for path, size in found.items() if path.parts[0] != ".git"}


def history_bytes(clone: Path) -> int:
    """Bytes of what git keeps."""
    return sum(path.stat().st_size for path in (clone / ".git").rglob("*") if path.is_file())


def wheel_bytes(clone: Path) -> int:
    """Bytes of the wheel that the build backend makes of a clone."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=clone,
        check=True,
        capture_output=True,
    )
    (wheel,) = (clone / "dist").glob("*.whl")
    return wheel.stat().st_size


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 1e6:8.2f} MB"
