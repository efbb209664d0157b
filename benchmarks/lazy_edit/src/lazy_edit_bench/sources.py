"""Files of other projects: fetched from npm by version, and known by hash.

The package holds no text of theirs. A `FetchedEdit` names its file by release, path and SHA-256,
and its results by lines of the file and of the update.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from lazy_edit_bench.corpus import DATA
from lazy_edit_bench.languages import syntax_of
from lazy_edit_bench.task import BenchError, Edit, Treatment, read_jsonl

FETCH_TIMEOUT_S = 300
MAX_FILE_BYTES = 60_000
MIN_FILE_LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedEdit:
    """An edit without its file. `pieces` are results as lines of the file and the update."""

    id: str
    path: str
    package: str
    version: str
    file: str
    sha256: str
    pieces: list[Any]
    update: str
    treat: Treatment = "apply"
    trap: str = ""
    instruction: str = ""
    made_by: str = ""

    def whole(self, original: str) -> Edit:
        """The edit with its file."""
        final = "\n" if original.endswith("\n") else ""
        old, sent = _lines(original), _lines(self.update)
        return Edit(
            id=self.id,
            path=self.path,
            original=original,
            results=tuple("\n".join(_unpacked(p, old, sent)) + final for p in self.pieces),
            update=self.update,
            treat=self.treat,
            trap=self.trap,
            instruction=self.instruction,
            made_by=self.made_by,
            source=f"{self.package}@{self.version}" if self.package else "",
        )


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A text file to make edits of; `later` is the same file in the package's next version."""

    path: str
    text: str
    source: str
    later: str | None = None


def read_fetched(folder: Path) -> list[Edit]:
    """The edits of fetched files. Raises BenchError where a file is missing or another one."""
    edits = []
    members: dict[tuple[str, str], dict[str, bytes]] = {}
    for plain in read_jsonl(DATA / "fetched.jsonl.xz"):
        stored = FetchedEdit(**plain)
        release = (stored.package, stored.version)
        if release not in members:
            members[release] = _members(_archive(folder, *release))
        content = members[release].get(stored.file, b"")
        if hashlib.sha256(content).hexdigest() != stored.sha256:
            raise BenchError(f"{stored.file} of {release[0]} {release[1]} is not the file of 1.0.0")
        edits.append(stored.whole(content.decode("utf-8")))
    return edits


def fetch(folder: Path) -> None:
    """Get every release that tasks are made of into `folder`, and check the archives' hashes."""
    wanted = {
        (plain["package"], plain["version"]) for plain in read_jsonl(DATA / "fetched.jsonl.xz")
    }
    pinned = read_packages()
    wanted |= {(name, version) for name, versions in pinned.items() for version, _ in versions}
    hashes = {(name, version): value for name, rows in pinned.items() for version, value in rows}
    folder.mkdir(parents=True, exist_ok=True)
    for package, version in sorted(wanted):
        archive = _archive(folder, package, version)
        if not archive.exists():
            _npm_pack(folder, package, version)
        expected = hashes.get((package, version))
        if expected and hashlib.sha256(archive.read_bytes()).hexdigest() != expected:
            raise BenchError(f"{archive} has another hash than {expected}; delete it and try again")
        print(f"{package} {version}", file=sys.stderr)


def read_packages() -> dict[str, list[tuple[str, str]]]:
    """Versions and archive hashes of the packages that the generator edits, oldest first."""
    entries = tomllib.loads((DATA / "packages.toml").read_text(encoding="utf-8"))["package"]
    return {
        entry["name"]: list(zip(entry["versions"], entry["sha256"], strict=True))
        for entry in entries
    }


def package_files(folder: Path) -> Iterator[SourceFile]:
    """The text files of the pinned packages, each with its text in the next version."""
    for package, versions in read_packages().items():
        texts = [
            (version, _text_files(_members(_archive(folder, package, version))))
            for version, _ in versions
        ]
        for number, (version, files) in enumerate(texts):
            later = texts[number + 1][1] if number + 1 < len(texts) else {}
            for path, text in sorted(files.items()):
                new = later.get(path)
                changed = new if new != text else None
                yield SourceFile(path, text, f"{package}@{version}", changed)


def folder_files(folder: Path) -> Iterator[SourceFile]:
    """The text files below a folder of the user's."""
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }
    for path, text in _text_files(found).items():
        yield SourceFile(path, text, folder.name)


def _text_files(members: dict[str, bytes]) -> dict[str, str]:
    texts = {}
    for path, content in members.items():
        name = PurePosixPath(path).name
        if len(content) > MAX_FILE_BYTES or syntax_of(path).name in ("other", "json"):
            continue
        if ".min." in name or "node_modules" in path or b"\r" in content or b"\0" in content:
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        lines = text.splitlines()
        if len(lines) >= MIN_FILE_LINES and max(map(len, lines)) <= 300:
            texts[path] = text
    return texts


def _archive(folder: Path, package: str, version: str) -> Path:
    flat = package.removeprefix("@").replace("/", "-")
    return folder / f"{flat}-{version}.tgz"


def _npm_pack(folder: Path, package: str, version: str) -> None:
    command = ["npm", "pack", f"{package}@{version}", "--silent", "--ignore-scripts"]
    command += ["--pack-destination", str(folder.resolve())]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        raise BenchError(f"{package} {version} cannot be fetched with npm: {said}") from error


def _members(archive: Path) -> dict[str, bytes]:
    """The files of an archive, without the folder that all are in."""
    members = {}
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                file = packed.extractfile(member) if member.isfile() else None
                if file is not None and member.size <= 1_000_000:
                    members[member.name.partition("/")[2]] = file.read()
    except (OSError, tarfile.TarError) as error:
        raise BenchError(f"{archive} cannot be read; run `lazy-edit-bench fetch`") from error
    return members


def _lines(text: str) -> list[str]:
    """Lines between newlines alone, as an editor counts them."""
    return text.removesuffix("\n").split("\n")


def _unpacked(pieces: Sequence[Any], old: list[str], sent: list[str]) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
            continue
        text, start, end, *shift = piece
        removed, added = [*shift, *(0, "")[len(shift) :]][:2]
        for line in (old if text == "original" else sent)[start:end]:
            yield added + line[removed:] if line.strip() else line
