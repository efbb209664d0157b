"""Makes the cases of both parts: `python -m training.generated.small_edits --out FOLDER`."""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from apply_service.evaluate.cases.case_file import Case
from training.generated.small_edits.cases import package_cases
from training.generated.small_edits.releases import (
    Part,
    PinnedPackage,
    SmallEditError,
    read_packages,
    sources_of,
)

PACKAGES = Path(__file__).parents[2] / "small_edit_packages.toml"
NUM_PROCESSES = 2


def cases_of(package: PinnedPackage, root: Path) -> list[Case]:
    """The cases of a package, fetched into `root`."""
    return package_cases(package, sources_of(package, root))


def write_part(path: Path, cases: Sequence[Case]) -> None:
    """Write cases, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
    ):
        for case in cases:
            packed.write(msgspec.json.encode(case) + b"\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Make both parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("build/small_edits"))
    parser.add_argument("--downloads", type=Path, default=Path("build/releases_small"))
    parser.add_argument("--packages", type=Path, default=PACKAGES)
    chosen = parser.parse_args(arguments)
    packages = read_packages(chosen.packages)
    parts: dict[Part, list[Case]] = {"fit": [], "report": []}
    try:
        with ProcessPoolExecutor(NUM_PROCESSES) as processes:
            made = processes.map(cases_of, packages, [chosen.downloads] * len(packages))
            for package, cases in zip(packages, made, strict=True):
                parts[package.part] += cases
    except SmallEditError as error:
        sys.exit(f"training.generated.small_edits: {error}")
    for part, cases in parts.items():
        write_part(chosen.out / f"{part}.jsonl.gz", cases)
        print(f"{part}: {len(cases)} cases of {len({case.package for case in cases})} packages")
        for language, number in sorted(Counter(case.language for case in cases).items()):
            print(f"  {language}: {number}")


if __name__ == "__main__":
    main()
