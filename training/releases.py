"""Fetches the releases that the corpus is made of, with pip and npm themselves.

ReleaseError: a package list that cannot be read. A release that cannot be fetched is no error: it
is reported and left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from training.sdist_backend import write_backends

Registry = Literal["wheel", "sdist", "npm"]
PERMISSIVE_LICENCES = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "TCL",
        "Unlicense",
    }
)
DOWNLOAD_TIMEOUT_S = 300
NUM_DOWNLOADS_AT_ONCE = 2


class ReleaseError(Exception):
    """The package list is wrong."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package and the versions to compare, oldest first."""

    registry: Registry
    name: str
    licence: str
    versions: tuple[str, ...]

    def folder(self, root: Path) -> Path:
        """Where its releases lie below `root`."""
        return root / self.registry / self.name.replace("/", "__")


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package; `archive` is None if it could not be fetched."""

    package: Package
    version: str
    archive: Path | None


def read_packages(path: Path, *, min_versions: int = 2) -> list[Package]:
    """The package list. Raises `ReleaseError` for a bad entry or a licence that is not allowed."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["package"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise ReleaseError(f"{path} is no package list ({error})") from error
    packages = [_package(entry, min_versions) for entry in entries]
    names = [package.name for package in packages]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ReleaseError(f"packages listed twice: {', '.join(sorted(repeated))}; merge them")
    return packages


def _package(entry: dict[str, object], min_versions: int) -> Package:
    if set(entry) != {"registry", "name", "licence", "versions"}:
        raise ReleaseError(f"package entry {entry} needs registry, name, licence and versions")
    registry, licence = str(entry["registry"]), str(entry["licence"])
    if registry not in get_args(Registry):
        raise ReleaseError(f"unknown registry {registry!r}; use one of {get_args(Registry)}")
    for part in licence.replace(" AND ", " OR ").split(" OR "):
        if part not in PERMISSIVE_LICENCES:
            raise ReleaseError(f"{entry['name']}: licence {part!r} is not on the permissive list")
    versions = tuple(cast("list[str]", entry["versions"]))
    if len(versions) < min_versions:
        raise ReleaseError(
            f"{entry['name']}: {len(versions)} of the {min_versions} versions that are needed"
        )
    return Package(cast("Registry", registry), str(entry["name"]), licence, versions)


def fetch_releases(packages: Sequence[Package], root: Path) -> Iterator[Release]:
    """Every release of `packages` in order, fetched into `root` unless it is there already."""
    with tempfile.TemporaryDirectory() as backends:
        write_backends(Path(backends))
        with ThreadPoolExecutor(NUM_DOWNLOADS_AT_ONCE) as threads:
            wanted = [(package, version) for package in packages for version in package.versions]
            yield from threads.map(
                lambda pair: _fetch(pair[0], pair[1], root, Path(backends)), wanted
            )


def _fetch(package: Package, version: str, root: Path, backends: Path) -> Release:
    folder = package.folder(root) / version
    if not _archive_in(folder):
        folder.mkdir(parents=True, exist_ok=True)
        problem = _download(package, version, folder, backends)
        if problem:
            print(f"skipped {package.name} {version}: {problem}", file=sys.stderr)
    return Release(package, version, _archive_in(folder))


def _archive_in(folder: Path) -> Path | None:
    found = [
        path for path in sorted(folder.glob("*")) if path.name.endswith((".whl", ".tar.gz", ".tgz"))
    ]
    return found[0] if found else None


def _download(package: Package, version: str, folder: Path, backends: Path) -> str | None:
    """Run the registry's own client; what went wrong, or None."""
    environment = dict(os.environ)
    if package.registry == "npm":
        command = ["npm", "pack", f"{package.name}@{version}", "--silent", "--ignore-scripts"]
        command += ["--pack-destination", str(folder.resolve())]
    else:
        form = "--only-binary" if package.registry == "wheel" else "--no-binary"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", form, ":all:", "--dest", str(folder)]
        if package.registry == "sdist":
            command.append("--no-build-isolation")
            environment["PYTHONPATH"] = str(backends)
        command.append(f"{package.name}=={version}")
    try:
        subprocess.run(
            command,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
        )
    except FileNotFoundError:
        return f"the command {command[0]} is not installed"
    except subprocess.TimeoutExpired:
        return f"no answer within {DOWNLOAD_TIMEOUT_S} s"
    except subprocess.CalledProcessError as error:
        last_lines = (error.stderr or "").strip().splitlines()[-1:]
        return last_lines[0] if last_lines else f"exit status {error.returncode}"
    return None
