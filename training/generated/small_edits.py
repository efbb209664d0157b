"""Small edits as language models make them daily, over the files of pinned packages.

Each is made as an old and a new file, and shown as a snippet: the headers around it, the new code,
and markers for what stays. A package's cases are all in `fit` or all in `report`, as
`small_edit_packages.toml` says. Each part has wordings of markers that the other never uses, besides
those that everybody writes.

`python -m training.generated.small_edits --out build/small_edits` writes one file for each part.

SmallEditError: a release of the list is missing or has another hash.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import random
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, cast

import msgspec

from apply_service.evaluate.cases.case_file import Case
from training.generated.small_edit_kinds import Edit, Gap, New, Rows, Source, edits_of, is_telling
from training.generated.small_edit_places import (
    GRAMMARS,
    SUFFIXES,
    Block,
    Item,
    find_blocks,
    indent_of,
    num_errors,
    parse,
)
from training.releases import Package, Registry, fetch_releases

Part = Literal["fit", "report"]
PACKAGES = Path(__file__).parent.parent / "small_edit_packages.toml"
MAX_A_FILE, MAX_A_PACKAGE = 6, 120
MAX_FILES_A_LANGUAGE = 45
MIN_ROWS, MAX_ROWS, MAX_FILE_BYTES = 12, 1200, 60_000


class SmallEditError(Exception):
    """The package list and the releases do not fit together."""


@dataclass(frozen=True, slots=True)
class PinnedPackage:
    """One release of a package, with the hash of its archive and the part its cases are in."""

    registry: str
    name: str
    licence: str
    version: str
    sha256: str
    part: Part


# Markers. `{unit}` is function or method.

_Wordings = dict[str, tuple[str, ...]]
_USUAL: _Wordings = {
    "rest": ("... existing code ...", "...", "... rest of the {unit} ...", "rest of the {unit} remains the same", "... existing code remains unchanged ...", "(unchanged)"),
    "before": ("... existing code ...", "..."),
    "members": ("... existing code ...", "...", "... other methods ..."),
    "file": ("... existing code ...", "...", "... rest of the file ..."),
    "top": ("... existing code ...", "..."),
    "cases": ("... existing code ...", "...", "... existing cases ..."),
    "entries": ("... existing code ...", "..."),
    "fields": ("... existing code ...", "...", "... existing fields ..."),
    "variants": ("... existing code ...", "..."),
    "imports": ("... existing code ...", "...", "... other imports ..."),
    "branch": ("... existing code ...", "..."),
    "docstring": ("... existing docstring ...",),
}  # fmt: skip
WORDINGS: dict[Part, _Wordings] = {
    "fit": {
        "rest": ("... rest of the {unit} unchanged ...", "... rest of code ...", "rest of the code stays the same", "... remaining logic ...", "[existing code]",
                 "same as before", "… existing code …", "... keep the rest of the {unit} ...", "the rest of the {unit} is unchanged", "... rest of the existing code ..."),
        "before": ("... previous code ...", "... earlier code unchanged ...", "... existing logic ...", "[existing code]"),
        "members": ("... existing methods ...", "... rest of the class ...", "other methods unchanged", "... existing members ..."),
        "file": ("... rest of file unchanged ...", "... remaining code ...", "rest of the file is unchanged"),
        "top": ("... imports ...", "... existing imports and code ...", "... code above unchanged ..."),
        "cases": ("... keep existing cases ...", "... other cases unchanged ..."),
        "entries": ("... existing entries ...", "... other entries unchanged ...", "... keep the others ..."),
        "fields": ("... other fields ...", "... rest of the fields ..."),
        "variants": ("... existing variants ...", "... other values ..."),
        "imports": ("... existing imports ...", "... rest of the file unchanged ..."),
        "branch": ("... unchanged ...", "... existing logic ..."),
        "docstring": ("... docstring unchanged ...",),
    },
    "report": {
        "rest": ("Rest of the {unit} remains unchanged", "... rest of the code", "... original implementation ...", "... rest of the existing implementation ...",
                 "Rest of the existing code...", "... {unit} body unchanged ...", "everything else stays the same", "<existing code>", "--- existing code ---",
                 "... existing logic unchanged ...", "(rest of the {unit})", "... (existing implementation) ...", "rest of {unit} unchanged"),
        "before": ("... existing statements ...", "(existing code above)", "... code before unchanged ...", "<existing code>"),
        "members": ("... remaining methods unchanged ...", "rest of the class remains the same", "... other members ...", "... keep other methods ..."),
        "file": ("... rest of the module ...", "Rest of the file remains unchanged", "... (rest of file) ..."),
        "top": ("... imports and other code ...", "(imports unchanged)", "... previous definitions ..."),
        "cases": ("... rest of the cases ...", "(other cases unchanged)", "... remaining cases ..."),
        "entries": ("... other existing entries ...", "... rest of the list ...", "(other items unchanged)"),
        "fields": ("... remaining fields ...", "(existing fields)", "... keep existing fields ..."),
        "variants": ("... remaining values ...", "(other variants)"),
        "imports": ("... other existing imports ...", "(rest of the file unchanged)"),
        "branch": ("... same as before ...", "(unchanged)"),
        "docstring": ("... same docstring ...",),
    },
}  # fmt: skip
USUAL_SHARE, SAME_WORDING_SHARE = 0.45, 0.55
_MARKER_LIKE = re.compile(r"^\s*(?:#|//|--|/\*|\*)?\s*(?:\.\.\.|…|\[existing|\(unchanged|<existing)")


class _Markers:
    """The markers of one snippet: often the same wording throughout."""

    def __init__(self, language: str, part: Part, unit: str, rng: random.Random) -> None:
        self._part: Part = part
        self._unit = unit
        self._rng = rng
        comment = GRAMMARS[language].comment
        form = "{comment} {text}" if rng.random() < 0.9 or comment == "--" else "{comment}{text}"
        if comment == "//" and rng.random() < 0.07 and language != "json":
            form = "/* {text} */"
        self._form = form.replace("{comment}", comment)
        self._same = rng.choice(_USUAL["rest"][:2]) if rng.random() < SAME_WORDING_SHARE else None
        self._seen: set[str] = set()

    def line(self, role: str, indent: str) -> str:
        """A marker line."""
        text = self._same
        if text is None or role == "docstring":
            is_usual = self._rng.random() < USUAL_SHARE
            text = self._rng.choice((_USUAL if is_usual else WORDINGS[self._part])[role])
        line = indent + self._form.format(text=text.format(unit=self._unit))
        self._seen.add(line)
        return line

    def has(self, line: str) -> bool:
        """Whether a line of the snippet is one of its markers."""
        return line in self._seen


def snippet_of(source: Source, edit: Edit, part: Part, rng: random.Random) -> tuple[list[str], list[str]] | None:
    """The snippet of an edit, and its lines without markers; None if its place is unclear."""
    lines = source.lines
    shown = _shown_chain(source, edit, rng)
    if shown is None:
        return None
    inner = edit.opened or edit.around
    is_method = any(block.kind == "class" for block in (inner.chain[:-1] if inner else ()))
    markers = _Markers(source.language, part, "method" if is_method else "function", rng)
    found = _pieces(source, edit, markers, rng)
    snippet, is_open, low, high = found
    for number, block in enumerate(reversed(shown)):
        role = edit.role if block is edit.around else "members" if block.kind in ("class", "struct") else "rest"
        is_innermost = number == 0 and edit.opened is None
        above = _gap_above(lines, block.body, low, markers, role if role != "rest" else "before", rng, must=is_innermost, indent=_indent_in(lines, block))
        below: list[str] = []
        if not is_open:
            must = is_innermost or (number == 0 and rng.random() < 0.8)
            below = _gap_below(lines, high, block.end, markers, role if role != "before" else "rest", rng, must=must, indent=_indent_in(lines, block))
            has_closer = block.stop > block.end
            is_open = has_closer and rng.random() < 0.12 and number + 1 == len(shown)
            below += lines[block.end : block.stop] if not is_open else []
        snippet = [*lines[_first_shown(source, block, rng) : block.body], *above, *snippet, *below]
        low, high = block.start, block.stop
    snippet = _in_file(source, edit, snippet, is_open, (low, high), shown, markers, rng)
    return snippet, [line for line in snippet if not markers.has(line)]


def _shown_chain(source: Source, edit: Edit, rng: random.Random) -> list[Block] | None:
    """The blocks whose headers are shown, outermost first, so that the place is clear."""
    if edit.around is None:
        if edit.opened is None:
            return []
        return [] if _is_known(source, edit.opened, None) else None
    chain = edit.around.chain
    blocks = [*chain, edit.opened] if edit.opened else chain
    num_needed = 1 if edit.opened is None else 0
    # A class may be left out, and a function around a block of its own kind of header.
    starts = list(range(len(chain) - num_needed + 1)) or [0]
    good = [start for start in starts if _is_clear(source, blocks[start:])]
    if not good:
        return None
    fewest, most = max(good), min(good)
    return chain[fewest if rng.random() < 0.35 else most :]


def _is_clear(source: Source, blocks: Sequence[Block]) -> bool:
    """Whether each header is the only one like it in what is around it."""
    outer: Block | None = None
    for block in blocks:
        if not _is_known(source, block, outer):
            return False
        outer = block
    return True


def _is_known(source: Source, block: Block, outer: Block | None) -> bool:
    start, end = (outer.body, outer.end) if outer else (0, len(source.lines))
    row = block.name_row
    if block.kind == "entries" and source.language in ("json",) and row == 0:
        return True
    return is_telling(source.lines, row, start, end) or (block.kind == "imports" and source.lines[row].strip() == "import (")


def _first_shown(source: Source, block: Block, rng: random.Random) -> int:
    """The first row of a header that a snippet shows; annotations may be left out."""
    row = block.start
    while row < block.name_row and re.match(r"\s*(?:@[\w.]+(?:\(.*\))?|#?\[.*\])$", source.lines[row]):
        row += 1
    return block.start if rng.random() < 0.5 else row


def _indent_in(lines: Sequence[str], block: Block) -> str:
    return indent_of(lines[block.items[0].start])


def _has_code(lines: Sequence[str], start: int, end: int) -> bool:
    return any(line.strip() for line in lines[start:end])


def _gap_above(lines: Sequence[str], start: int, end: int, markers: _Markers, role: str, rng: random.Random, *, must: bool, indent: str) -> list[str]:
    """What stands for the rows between a header and what is shown below it."""
    if not _has_code(lines, start, end):
        return list(lines[start:end])
    if not must and rng.random() < 0.35:
        return []
    num_blank = 0
    while not lines[end - 1 - num_blank].strip():
        num_blank += 1
    keeps = rng.random() < 0.6
    return [markers.line(role, indent), *lines[end - num_blank * keeps : end]]


def _gap_below(lines: Sequence[str], start: int, end: int, markers: _Markers, role: str, rng: random.Random, *, must: bool, indent: str) -> list[str]:
    """What stands for the rows between what is shown and a closer below it."""
    if not _has_code(lines, start, end):
        return list(lines[start:end])
    if not must and rng.random() < 0.35:
        return []
    num_blank = 0
    while not lines[start + num_blank].strip():
        num_blank += 1
    keeps = rng.random() < 0.6
    return [*lines[start : start + num_blank * keeps], markers.line(role, indent)]


def _pieces(source: Source, edit: Edit, markers: _Markers, rng: random.Random) -> tuple[list[str], bool, int, int]:
    """The lines of an edit's own pieces; whether they end without the closer of their block."""
    lines, shown = source.lines, list[str]()
    is_open = False
    for piece in edit.pieces:
        if isinstance(piece, New):
            shown += edit.new
        elif isinstance(piece, Gap):
            first = next((line for line in lines[piece.start : piece.end] if line.strip()), "")
            shown.append(markers.line(piece.role, indent_of(first)))
        elif edit.opened and piece.start == edit.opened.end and piece.end > piece.start and rng.random() < 0.12:
            is_open = True
        else:
            shown += lines[piece.start : piece.end]
    return shown, is_open, edit.low, edit.high


def _in_file(
    source: Source, edit: Edit, snippet: list[str], is_open: bool, span: tuple[int, int], shown: Sequence[Block], markers: _Markers, rng: random.Random
) -> list[str]:
    """A snippet with what stands for the rest of the file, or the next header, or nothing."""
    lines, (low, high) = source.lines, span
    outer = shown[0] if shown else edit.opened
    is_nested = bool(outer and outer.parent)
    indent = indent_of(lines[outer.start]) if outer and is_nested else ""
    is_first = outer is None
    if _has_code(lines, 0, low) and rng.random() < (0.5 if is_first else 0.35):
        snippet = [*_gap_above(lines, 0, low, markers, "top", rng, must=True, indent=indent), *snippet]
    if is_open or not _has_code(lines, high, len(lines)):
        return snippet
    chance = rng.random()
    following = next((block for block in source.blocks if outer and block.kind == outer.kind == "function" and block.parent is outer.parent and block.start >= high), None)
    if following and chance < 0.2 and not _has_code(lines, high, following.start) and following.body - following.start <= 4:
        rest = [*lines[high : following.body], markers.line("rest", _indent_in(lines, following))]
        return [*snippet, *rest, *lines[following.end : following.stop]]
    if chance < (0.9 if is_first else 0.55):
        end = outer.parent.end if outer and outer.parent else len(lines)
        if _has_code(lines, high, end):
            role = "imports" if is_first else "members" if is_nested else "file"
            return [*snippet, *_gap_below(lines, high, end, markers, role, rng, must=True, indent=indent)]
    return snippet


# Cases.


def read_source(path: str, text: str, language: str) -> Source | None:
    """A file with its blocks, or None if it is not fit for edits."""
    lines = text.removesuffix("\n").split("\n")
    if not MIN_ROWS <= len(lines) <= MAX_ROWS or any(_MARKER_LIKE.match(line) for line in lines):
        return None
    if max(map(len, lines)) > 240 or not text.endswith("\n") or text.endswith("\n\n") or "\r" in text:
        return None
    tree = parse(text, language)
    imports = _import_rows(tree.root_node, language, lines)
    steps = Counter(
        len(indent_of(line)) for line in lines if line.startswith(" ") and len(indent_of(line)) in (2, 4, 8)
    )
    is_tabbed = sum(line.startswith("\t") for line in lines) > len(lines) / 8
    unit = "\t" if is_tabbed else "  " if steps[2] else "    "
    return Source(path, language, lines, find_blocks(tree, lines, language), imports, unit)


def _import_rows(root: object, language: str, lines: Sequence[str]) -> list[Item]:
    """The imports at the margin, in order, each on rows of its own."""
    found: list[Item] = []
    for node in cast("list[object]", getattr(root, "named_children")):
        start, end = getattr(node, "start_point"), getattr(node, "end_point")
        kind, last = getattr(node, "type"), end.row + (end.column > 0)
        first = lines[start.row]
        needs = {"javascript": ("import", "const"), "lua": ("local",), "ruby": ("require",)}.get(language)
        is_import = kind in GRAMMARS[language].imports and start.column == 0
        if kind == "lexical_declaration" or language in ("lua",):
            is_import = is_import and "require" in first and last == start.row + 1
        if needs and not first.startswith(needs):
            is_import = False
        if is_import and (not found or found[-1].end <= start.row):
            found.append(Item(start.row, last, kind, cast("object", node)))  # type: ignore[arg-type]
    return found


def file_cases(package: PinnedPackage, path: str, text: str) -> list[Case]:
    """The cases of one file, of as many kinds as it has."""
    language = language_of(path)
    source = read_source(path, text, language)
    if source is None:
        return []
    rng = random.Random(f"small:{package.name}:{path}")
    by_kind: dict[str, list[Case]] = {}
    num_old = num_errors(parse(text, language))
    for edit in edits_of(source, rng):
        if len(by_kind.get(edit.kind, ())) >= 2:
            continue
        case = _case(package, source, edit, num_old, rng)
        if case is not None:
            by_kind.setdefault(edit.kind, []).append(case)
        if sum(map(len, by_kind.values())) >= 3 * MAX_A_FILE:
            break
    kinds = rng.sample(sorted(by_kind), len(by_kind))
    ordered = [by_kind[kind][turn] for turn in range(2) for kind in kinds if turn < len(by_kind[kind])]
    return ordered[:MAX_A_FILE]


def _case(package: PinnedPackage, source: Source, edit: Edit, num_old: int, rng: random.Random) -> Case | None:
    lines = source.lines
    new = [*lines[: edit.start], *edit.new, *lines[edit.end :]]
    known = {line.strip() for line in (lines if edit.around is None else lines[edit.around.start : edit.around.stop])}
    added = [line.strip() for line in edit.new if re.search(r"\w{3}", line) and line.strip() not in lines[edit.start : edit.end]]
    if not added or added[0] in known or new == lines:
        return None
    made = snippet_of(source, edit, package.part, rng)
    if made is None or len(made[0]) > 90:
        return None
    snippet, shown = made
    text = "\n".join(new) + "\n"
    if not is_in_order(shown, new) or len(shown) == len(snippet):
        return None
    if num_errors(parse(text, source.language)) > num_old:
        return None
    digest = hashlib.sha256("\0".join((package.name, source.path, edit.kind, text, *snippet)).encode()).hexdigest()[:16]
    return Case(
        id=f"small-{digest}",
        path=source.path,
        original="\n".join(lines) + "\n",
        update="\n".join(snippet) + "\n",
        expected=text,
        style=f"{edit.kind}/{source.language}",
        language=source.language,
        package=package.name,
    )


def is_in_order(shown: Iterable[str], lines: Iterable[str]) -> bool:
    """Whether all lines that are shown are in a file, in their order."""
    rest = iter(lines)
    return all(line in rest for line in shown)


def package_cases(package: PinnedPackage, files: Iterable[tuple[str, str]]) -> list[Case]:
    """At most `MAX_A_PACKAGE` cases of a package, of all kinds and languages in turn."""
    groups: dict[str, list[Case]] = {}
    seen: set[str] = set()
    num_files = Counter[str]()
    in_order = sorted(files, key=lambda file: hashlib.sha256(file[0].encode()).digest())
    for path, text in in_order:
        language = language_of(path)
        if text in seen or num_files[language] == MAX_FILES_A_LANGUAGE:
            continue
        seen.add(text)
        num_files[language] += 1
        for case in file_cases(package, path, text):
            groups.setdefault(str(case.style), []).append(case)
    for cases in groups.values():
        cases.sort(key=lambda case: case.id)
    turns = max(map(len, groups.values()), default=0)
    ordered = [groups[style][turn] for turn in range(turns) for style in sorted(groups) if turn < len(groups[style])]
    return ordered[:MAX_A_PACKAGE]


# Releases.

_NOT_WRITTEN_HERE = frozenset("vendor vendored _vendor third_party thirdparty node_modules extern external dist build lib-cov generated locale locales legacy snapshots Pods umd cjs esm bundles lib.commonjs commonjs minified locale".split())  # fmt: skip


def read_packages(path: Path) -> list[PinnedPackage]:
    """The package list."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["package"]
    return [msgspec.convert(entry, PinnedPackage) for entry in entries]


def _archive(package: PinnedPackage, root: Path) -> Path:
    """The archive of a package, fetched unless it is there. Raises `SmallEditError`."""
    if package.registry == "deb":
        archive = _fetch_deb(package, root)
    else:
        wanted = Package(cast("Registry", package.registry), package.name, package.licence, (package.version,))
        archive = next(fetch_releases([wanted], root)).archive
    if archive is None:
        raise SmallEditError(f"{package.name} {package.version} cannot be fetched")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != package.sha256:
        raise SmallEditError(f"{archive} has the hash {digest}, not {package.sha256}; remove it to fetch it anew")
    return archive


def _fetch_deb(package: PinnedPackage, root: Path) -> Path | None:
    folder = root / "deb" / package.name / package.version.replace(":", "_")
    if not list(folder.glob("*.deb")):
        folder.mkdir(parents=True, exist_ok=True)
        command = ["apt-get", "download", "-qq", f"{package.name}={package.version}"]
        subprocess.run(command, cwd=folder, check=False, capture_output=True)
    return next(iter(sorted(folder.glob("*.deb"))), None)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an archive that may be source, by their path inside it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                if _is_wanted(info.filename, info.file_size):
                    yield info.filename, wheel.read(info)
        return
    packed = _unpacked_deb(archive) if archive.suffix == ".deb" else archive.open("rb")
    with packed, tarfile.open(fileobj=packed, mode="r:*") as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            handle = tar.extractfile(member) if member.isfile() and _is_wanted(path, member.size) else None
            if handle is not None:
                yield path, handle.read()


def _unpacked_deb(archive: Path) -> io.BytesIO:
    """The tar of a Debian package's files."""
    content = archive.read_bytes()
    place = 8
    while place < len(content):
        name, size = content[place : place + 16].strip(), int(content[place + 48 : place + 58])
        place += 60
        if name.startswith(b"data.tar"):
            return io.BytesIO(content[place : place + size])
        place += size + size % 2
    raise SmallEditError(f"{archive} has no data")


def _is_wanted(path: str, num_bytes: int) -> bool:
    pure = PurePosixPath(path)
    is_own = not set(pure.parts[:-1]) & _NOT_WRITTEN_HERE and not any(part.startswith(".") and part != ".github" for part in pure.parts)
    is_source = (pure.suffix.lower() in SUFFIXES or not pure.suffix) and ".min." not in pure.name and not pure.name.endswith(".d.ts")
    return is_own and is_source and pure.name != "package-lock.json" and 200 <= num_bytes <= MAX_FILE_BYTES


_MADE_BY_PROGRAMS = re.compile(r"@generated|do not edit|auto-?generated|generated by", re.I)


_SHELL = re.compile(rb"#!\s*/(?:usr/)?bin/(?:env )?(?:ba)?sh\b")


def language_of(path: str) -> str:
    """The language of a file; a script without a suffix is one of a shell."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower(), "shell")


def _sources(archive: Path) -> Iterator[tuple[str, str]]:
    for path, content in _members(archive):
        if not PurePosixPath(path).suffix and not _SHELL.match(content):
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if "\0" not in text and not _MADE_BY_PROGRAMS.search(text[:600]):
            yield path, text


def cases_of(package: PinnedPackage, root: Path) -> list[Case]:
    """The cases of a package, fetched into `root`."""
    return package_cases(package, _sources(_archive(package, root)))


def write_part(path: Path, cases: Sequence[Case]) -> None:
    """Write cases, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
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
        with ProcessPoolExecutor(2) as processes:
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
