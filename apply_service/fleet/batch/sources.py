"""Reads edits from JSON lines, Parquet, a folder or a range of git commits, slice by slice.

A slice says where its edits stand and is small, so that other machines may read them: they need
the same paths. JSON lines are those of `apply-client batch`, with `original` besides.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from apply_service.fleet.batch.edit import Edit, EditRow, SourceError, edit_of
from apply_service.regular_file import open_regular, read_regular

GIT_PREFIX = "git:"
UPDATE_SUFFIX = ".update"
# More is read of no file; max_file_bytes is judged where the edit is made.
MAX_FILE_BYTES = 64 << 20


class _Slice(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Some edits that stand together; `root` is where the files of rows without text are."""

    root: str


class JsonLines(_Slice, frozen=True, kw_only=True):
    """Lines of a file, from a byte on; `line` is the number of the first."""

    path: str
    offset: int
    line: int
    num_lines: int


class ParquetRows(_Slice, frozen=True, kw_only=True):
    """Rows of one row group of a file."""

    path: str
    group: int
    start: int
    stop: int


class FolderFiles(_Slice, frozen=True, kw_only=True):
    """Updates beside their files: `a.py.update` is of `a.py`."""

    names: tuple[str, ...]


class GitFiles(_Slice, frozen=True, kw_only=True):
    """Files that differ between two commits; the root is the repository."""

    before: str
    after: str
    names: tuple[str, ...]


Slice = JsonLines | ParquetRows | FolderFiles | GitFiles


def slices_of(source: str, *, root: Path, num_rows: int) -> Iterator[Slice]:
    """The slices of a source, with up to so many rows each. Raises SourceError.

    A source is a folder, a file of Parquet (`*.parquet`) or of JSON lines, or `git:A..B`.
    """
    if source.startswith(GIT_PREFIX):
        yield from _git_slices(source.removeprefix(GIT_PREFIX), root=root, num_rows=num_rows)
        return
    path = Path(source).resolve()
    if path.is_dir():
        names = sorted(str(one.relative_to(path)) for one in path.rglob("*" + UPDATE_SUFFIX))
        for some in _runs(names, num_rows):
            yield FolderFiles(root=str(path), names=some)
    elif path.suffix == ".parquet":
        yield from _parquet_slices(path, root=root, num_rows=num_rows)
    else:
        yield from _line_slices(path, root=root, num_rows=num_rows)


def read_slice(one: Slice) -> list[Edit]:
    """The edits of a slice. Raises SourceError; a row's own fault is that edit's problem."""
    root = Path(one.root)
    if isinstance(one, JsonLines):
        return [_placed(row, root, place) for place, row in _read_lines(one)]
    if isinstance(one, ParquetRows):
        return [_placed(row, root, place) for place, row in _read_parquet(one)]
    if isinstance(one, FolderFiles):
        return [_beside(root, name) for name in one.names]
    return [_of_commit(one, name) for name in one.names]


def _runs(names: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(names), size):
        yield tuple(names[start : start + size])


def _line_slices(path: Path, *, root: Path, num_rows: int) -> Iterator[JsonLines]:
    offset = start = first = count = 0
    try:
        with open_regular(path) as stream:
            for number, content in enumerate(stream, start=1):
                if not count:
                    start, first = offset, number
                offset += len(content)
                count += 1
                if count == num_rows:
                    yield _lines(path, root, start, first, count)
                    count = 0
    except OSError as error:
        raise _unreadable(path, error) from error
    if count:
        yield _lines(path, root, start, first, count)


def _lines(path: Path, root: Path, offset: int, line: int, num_lines: int) -> JsonLines:
    return JsonLines(root=str(root), path=str(path), offset=offset, line=line, num_lines=num_lines)


def _read_lines(one: JsonLines) -> Iterator[tuple[str, EditRow | str]]:
    name = Path(one.path).name
    try:
        with open_regular(one.path) as stream:
            stream.seek(one.offset)
            for number in range(one.line, one.line + one.num_lines):
                content = stream.readline()
                if content.strip():
                    yield f"{name}:{number}", _row_of(content)
    except OSError as error:
        raise _unreadable(Path(one.path), error) from error


def _row_of(content: bytes) -> EditRow | str:
    """The row of a line, or what is wrong with it."""
    try:
        return msgspec.json.decode(content, type=EditRow)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"the line is no edit: {error}; see docs/batch.md"


def _parquet_slices(path: Path, *, root: Path, num_rows: int) -> Iterator[ParquetRows]:
    with _open_parquet(path) as file:
        for group in range(file.num_row_groups):
            total = file.metadata.row_group(group).num_rows
            for start in range(0, total, num_rows):
                yield ParquetRows(
                    root=str(root),
                    path=str(path),
                    group=group,
                    start=start,
                    stop=min(total, start + num_rows),
                )


def _read_parquet(one: ParquetRows) -> Iterator[tuple[str, EditRow | str]]:
    name = Path(one.path).name
    with _open_parquet(Path(one.path)) as file:
        known = [field for field in EditRow.__struct_fields__ if field in file.schema_arrow.names]
        table = file.read_row_group(one.group, columns=known)
        for number, row in enumerate(table.slice(one.start, one.stop - one.start).to_pylist()):
            place = f"{name}:{one.group}:{one.start + number}"
            try:
                yield place, msgspec.convert(row, type=EditRow)
            except msgspec.ValidationError as error:
                yield place, f"the row is no edit: {error}; see docs/batch.md"


def _open_parquet(path: Path) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise SourceError(
            f"{path} cannot be read without pyarrow; install `apply-service[ray]`"
        ) from error
    try:
        open_regular(path).close()
        file = ParquetFile(path)
    except (OSError, ArrowException) as error:
        raise _unreadable(path, error) from error
    if "update" not in file.schema_arrow.names:
        raise SourceError(
            f"{path} has the columns {file.schema_arrow.names}, and needs `update`; the others of"
            f" an edit are {list(EditRow.__struct_fields__)}"
        )
    return file


def _placed(row: EditRow | str, root: Path, place: str) -> Edit:
    """The edit of a row, with the file that it names below the root."""
    if isinstance(row, str):
        return edit_of(EditRow(update=""), b"", place=place, problem=row)
    if row.original is not None:
        return edit_of(row, row.original.encode("utf-8", "surrogatepass"), place=place)
    if row.path is None:
        missing = "the edit has neither `original` nor `path`; give one of them"
        return edit_of(row, b"", place=place, problem=missing)
    path = (root / row.path).resolve()
    if not path.is_relative_to(root.resolve()):
        outside = f"{row.path} is outside {root}; name a file below it"
        return edit_of(row, b"", place=place, problem=outside)
    try:
        return edit_of(row, read_regular(path, max_bytes=MAX_FILE_BYTES), place=place)
    except OSError as error:
        reason = f"{row.path} cannot be read below {root}: {error.strerror}"
        return edit_of(row, b"", place=place, problem=reason)


def _beside(root: Path, name: str) -> Edit:
    path = name.removesuffix(UPDATE_SUFFIX)
    try:
        update = read_regular(root / name, max_bytes=MAX_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        return edit_of(EditRow(update="", path=path), b"", place=path, problem=str(error))
    return _placed(EditRow(update=update, path=path), root, path)


def _git_slices(commits: str, *, root: Path, num_rows: int) -> Iterator[GitFiles]:
    before, dots, after = commits.partition("..")
    if not dots or after.startswith("."):
        raise SourceError(f"{commits!r} is no range of commits; write git:BEFORE..AFTER")
    hashes = [_commit(root, name) for name in (before, after or "HEAD")]
    listed = _git(root, "diff", "--name-only", "-z", "--no-renames", "--diff-filter=M", *hashes)
    names = [name.decode("utf-8", "surrogateescape") for name in listed.split(b"\0") if name]
    for some in _runs(names, num_rows):
        yield GitFiles(root=str(root), before=hashes[0], after=hashes[1], names=some)


def _commit(root: Path, name: str) -> str:
    end = f"{name}^{{commit}}"
    return _git(root, "rev-parse", "--verify", "--end-of-options", end).decode().strip()


def _of_commit(one: GitFiles, name: str) -> Edit:
    root = Path(one.root)
    original = _git(root, "show", f"{one.before}:{name}")
    change = _git(root, "diff", "--no-ext-diff", one.before, one.after, "--", f":(literal){name}")
    try:
        update = change.decode("utf-8")
    except UnicodeDecodeError:
        reason = f"the diff of {name} is not UTF-8"
        return edit_of(EditRow(update="", path=name), original, place=name, problem=reason)
    return edit_of(EditRow(update=update, path=name), original, place=name)


def _git(root: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, check=True, capture_output=True).stdout
    except OSError as error:
        raise SourceError(f"git cannot be run: {error}; install it") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise SourceError(f"git says of {root}: {said}; name its commits") from error


def _unreadable(path: Path, error: Exception) -> SourceError:
    reason = getattr(error, "strerror", None) or error
    return SourceError(f"{path} cannot be read: {reason}; name a file of edits, see docs/batch.md")
