"""Cases whose writers knew only the format that agents are told, not how merging works.

`python -m training.blind build` fetches the packages that they edit and writes whole cases into
`build/blind`, as `apply-service bench` reads them. `python -m training.blind pack FOLDER PART`
stores what a writer wrote (`cases.jsonl` and `sources.json` of a folder) under `training/cases`.
No text of a package is stored: a file is named by release, path and hash, and a result by lines of
the file and of the update.

BlindCaseError: a file of a package is missing or has another hash.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from apply_service.evaluate.cases.case_file import Case, read_lines
from training.case_file import document_lines
from training.releases import Registry, Release, fetch_releases, read_packages

FOLDER = Path(__file__).parent / "cases/blind"
PACKAGES = Path(__file__).parent / "blind_packages.toml"

Treatment = Literal["merge", "ask", "refuse"]


class BlindCaseError(Exception):
    """A case cannot be built from its packages."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a release; `sha256` is the hash of the file."""

    registry: Registry
    package: str
    version: str
    path: str
    sha256: str


class Piece(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Lines [start, end) of the original or of the update.

    `removed` characters go from the front of each line that is not blank, then `added` goes there.
    """

    text: Literal["original", "update"]
    start: int
    end: int
    removed: int = 0
    added: str = ""


Result = tuple[Piece | str, ...]


class BlindCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A case as it is stored.

    `treat` says what must happen: one of `results` is merged, the readings in `results` lead to a
    question, or the update is refused. A plain text in a result is one line of its own.
    """

    id: str
    kind: str
    treat: Treatment
    path: str
    instruction: str
    update: str
    results: tuple[Result, ...]
    reason: str = ""
    source: Source | None = None
    original: str | None = None


def pack_result(result: Sequence[str], original: Sequence[str], update: Sequence[str]) -> Result:
    """The lines of a result as runs of lines of both texts, the longest that fits at each line."""
    pieces: list[Piece | str] = []
    at = 0
    while at < len(result):
        runs = [
            *_runs("original", original, result, at),
            *_runs("update", update, result, at),
        ]
        best = max(runs, key=lambda run: (run.end - run.start, not run.added), default=None)
        pieces.append(best or result[at])
        at += best.end - best.start if best else 1
    return tuple(pieces)


def _runs(
    text: Literal["original", "update"], lines: Sequence[str], result: Sequence[str], at: int
) -> Iterator[Piece]:
    """Every run of `lines` that begins at a line like `result[at]`."""
    stripped = result[at].lstrip()
    indent = result[at][: len(result[at]) - len(stripped)]
    for start, line in enumerate(lines):
        if line.lstrip() != stripped:
            continue
        own = line[: len(line) - len(stripped)]
        common = len(_common_end(own, indent)) if own != indent else len(own)
        piece = Piece(text, start, start, len(own) - common, indent[: len(indent) - common])
        end = start
        while (
            end < len(lines)
            and at + end - start < len(result)
            and _shifted(lines[end], piece) == result[at + end - start]
        ):
            end += 1
        if end > start:
            yield Piece(text, start, end, piece.removed, piece.added)


def _common_end(one: str, other: str) -> str:
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return one[len(one) - length :]


def _shifted(line: str, piece: Piece) -> str:
    return piece.added + line[piece.removed :] if line.strip() else line


def unpack_result(result: Result, original: Sequence[str], update: Sequence[str]) -> list[str]:
    """The lines that `pack_result` was given."""
    lines: list[str] = []
    for piece in result:
        if isinstance(piece, str):
            lines.append(piece)
        else:
            of = original if piece.text == "original" else update
            lines += [_shifted(line, piece) for line in of[piece.start : piece.end]]
    return lines


def whole_case(case: BlindCase, original: str) -> Case:
    """The case as the commands of `bench` read it; readings of a question are all results."""
    lines, update = document_lines(original), document_lines(case.update)
    final = "\n" if original.endswith("\n") else ""
    results = ["\n".join(unpack_result(result, lines, update)) + final for result in case.results]
    expected, *also = results or [original]
    return Case(
        id=case.id,
        path=case.path,
        original=original,
        update=case.update,
        expected=expected,
        also=tuple(also),
        instruction=case.instruction,
        style=case.kind,
        must_refuse=case.treat != "merge",
        package=case.source.package if case.source else None,
    )


def read_blind_cases(path: Path) -> list[BlindCase]:
    """The cases of a packed file."""
    decoder = msgspec.json.Decoder(BlindCase)
    return [decoder.decode(line) for line in read_lines(path)]


def write_blind_cases(path: Path, cases: Iterable[BlindCase]) -> None:
    """Write a packed file; equal cases give equal bytes."""
    lines = b"".join(msgspec.json.encode(case) + b"\n" for case in cases)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(lines, 9, mtime=0))


def files_of(releases: Iterable[Release]) -> dict[tuple[str, str], Path]:
    """The archive of every release by package and version. Raises BlindCaseError."""
    archives = {}
    for release in releases:
        if release.archive is None:
            raise BlindCaseError(f"{release.package.name} {release.version} was not fetched")
        archives[release.package.name, release.version] = release.archive
    return archives


def read_source(source: Source, archives: dict[tuple[str, str], Path]) -> str:
    """The text of a file of a release. Raises BlindCaseError if it is not the one that was seen."""
    archive = archives[source.package, source.version]
    with tarfile.open(archive, "r:gz") as packed:
        top = packed.next()
        name = f"{top.name.partition('/')[0]}/{source.path}" if top else source.path
        try:
            member = packed.extractfile(name)
        except KeyError:
            raise BlindCaseError(f"{archive.name} has no file {source.path}") from None
        content = member.read() if member else b""
    if hashlib.sha256(content).hexdigest() != source.sha256:
        raise BlindCaseError(f"{source.path} of {archive.name} is not the file of the case")
    return content.decode("utf-8")


def build(out: Path, downloads: Path) -> None:
    """Write every part as whole cases into `out`."""
    archives = files_of(fetch_releases(read_packages(PACKAGES, min_versions=1), downloads))
    texts: dict[Source, str] = {}
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        target = out / path.name.removesuffix(".gz")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            for case in read_blind_cases(path):
                original = case.original
                if case.source is not None:
                    if case.source not in texts:
                        texts[case.source] = read_source(case.source, archives)
                    original = texts[case.source]
                assert original is not None, "a case without a source holds its file"
                file.write(msgspec.json.encode(whole_case(case, original)) + b"\n")
        print(target)


def pack(folder: Path, part: str) -> None:
    """Store the cases of a writer's folder as `part`."""
    try:
        sources = json.loads((folder / "sources.json").read_text(encoding="utf-8"))
        lines_written = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BlindCaseError(f"{error.filename} cannot be read: {error.strerror}") from error
    cases = []
    for line in lines_written:
        written = json.loads(line)
        name = written["file"]
        source = msgspec.convert(sources[name], Source) if name in sources else None
        original, update = written["original"], written["update"]
        lines, sent = document_lines(original), document_lines(update)
        cases.append(
            BlindCase(
                id=written["id"],
                kind=written["kind"],
                treat=written["treat"],
                path=source.path if source else name,
                instruction=written["instruction"],
                update=update,
                results=tuple(
                    pack_result(document_lines(text), lines, sent) for text in written["results"]
                ),
                reason=written["reason"],
                source=source,
                original=None if source else original,
            )
        )
        whole = whole_case(cases[-1], original)
        if written["results"] and [whole.expected, *whole.also] != written["results"]:
            raise BlindCaseError(f"{written['id']}: a result does not come back from its pieces")
    write_blind_cases(FOLDER / f"{part}.jsonl.gz", cases)
    print(f"{part}: {len(cases)} cases")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="fetch the packages and write whole cases")
    builder.add_argument("--out", type=Path, default=Path("build/blind"))
    builder.add_argument("--downloads", type=Path, default=Path("build/releases"))
    packer = commands.add_parser("pack", help="store a writer's cases")
    packer.add_argument("folder", type=Path)
    packer.add_argument("part")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "build":
            build(chosen.out, chosen.downloads)
        else:
            pack(chosen.folder, chosen.part)
    except BlindCaseError as error:
        sys.exit(f"training.blind: {error}")


if __name__ == "__main__":
    main()
