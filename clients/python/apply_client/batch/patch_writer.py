"""Patches for `git apply`, made from files before and after."""

from __future__ import annotations

import difflib
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from apply_client.batch.journal import Journal
from apply_client.batch.store import read_if_there
from apply_client.careful_files.anchored_folder import AnchoredFolder
from apply_client.careful_files.file_rights import FileRights
from apply_client.update_text import file_error
from apply_client.workspace.errors import ContentConflictError, WorkspaceError
from apply_client.workspace.folder import Workspace, sha256_of

_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def file_patch(path: str, before: bytes | None, after: bytes | None) -> bytes:
    """The change of one file; None stands for no file. Empty if nothing changed.

    Raises WorkspaceError for bytes that no text patch can hold.
    """
    if before == after:
        return b""
    if b"\0" in (before or b"") or b"\0" in (after or b""):
        raise WorkspaceError(path, "has NUL bytes, which no patch can hold; use --write")
    old, new = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    head = b"diff --git %s %s\n" % (old, new)
    if before is None:
        head += b"new file mode 100644\n"
    if after is None:
        head += b"deleted file mode 100644\n"
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(before or b""),
        _lines(after or b""),
        b"/dev/null" if before is None else _label(old),
        b"/dev/null" if after is None else _label(new),
        lineterm=b"\n",
    )
    return head + b"".join(_ended(lines))


def _lines(content: bytes) -> list[bytes]:
    """Lines with their ends; unlike in `splitlines`, only a newline ends one."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _ended(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + _NO_NEWLINE


def _quoted(name: str) -> bytes:
    """A name as git writes it: plain, or in quotes where it contains special characters."""
    if '"' not in name and "\\" not in name:
        return name.encode()
    return b'"%s"' % name.replace("\\", "\\\\").replace('"', '\\"').encode()


def _label(name: bytes) -> bytes:
    """A name for a patch header; a tab ends a name with spaces, where readers expect a date."""
    return name + b"\t" if b" " in name else name


def write_patch(
    target: str, paths: Iterable[str], journal: Journal, workspace: Workspace
) -> list[WorkspaceError]:
    """Write the changes in a journal, sorted by path, to a file or, for `-`, to stdout.

    Files left out, because they have changed meanwhile or are not text, come back as errors.
    Raises InputError or DiskError if the patch cannot be written; a file is replaced whole or
    not at all.
    """
    conflicts: list[WorkspaceError] = []
    if target == "-":
        _write_changes(sys.stdout.buffer, sorted(paths), journal, workspace, conflicts)
        sys.stdout.flush()
        return conflicts
    try:
        with whole_file(Path(os.path.realpath(target))) as stream:
            _write_changes(stream, sorted(paths), journal, workspace, conflicts)
    except OSError as error:
        raise file_error(f"write {target}", error) from error
    return conflicts


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file at the end, in one step; an error changes nothing.

    An existing file hands on its owner and its mode. A pipe or a device is written to.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    with closing(AnchoredFolder.open_root(path.parent)) as folder:
        name = f".apply-{secrets.token_hex(8)}.tmp"
        descriptor = folder.open_new(name, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                if path.exists():
                    with path.open("rb") as old:
                        FileRights.of(old.fileno()).give_to(descriptor)
                os.fsync(descriptor)
            folder.rename(name, path.name)
        except BaseException:
            folder.remove(name)
            raise
        folder.sync()


def _write_changes(
    stream: BinaryIO,
    paths: Sequence[str],
    journal: Journal,
    workspace: Workspace,
    conflicts: list[WorkspaceError],
) -> None:
    for path in paths:
        history = journal.history(path)
        if not history.is_changed:
            continue
        try:
            before = read_if_there(workspace, path)
            if (None if before is None else sha256_of(before)) != history.start:
                raise ContentConflictError(path, "has changed since its first edit was made")
            stream.write(file_patch(path, before, journal.content(path)))
        except WorkspaceError as error:
            conflicts.append(error)
