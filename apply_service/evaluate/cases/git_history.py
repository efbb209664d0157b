"""Reads a repository with git's own plumbing: which commits changed one file, and its contents.

GitError ← BlobTooLargeError
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_FILE_MODES = ("100644", "100755")
_COMMIT_MARK = "commit:"
_CHUNK_BYTES = 1 << 16


class GitError(Exception):
    """git is not there, or does not do what it is asked for."""


class BlobTooLargeError(GitError):
    """A file has more bytes than the reader takes."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A commit that changed one file and nothing else; the blobs are its two versions."""

    commit: str
    path: str
    old_blob: str
    new_blob: str


def single_file_changes(repository: Path, revision: str) -> Iterator[FileChange]:
    """Commits reachable from `revision` that modified exactly one regular file, newest first.

    Merges are left out. Raises GitError. The history is read as far as the caller reads on.
    """
    # No diff driver or text conversion of the user's configuration may run.
    arguments = ["log", "--no-merges", "--raw", "-z", "--no-abbrev", "--no-renames"]
    arguments += ["--no-ext-diff", "--no-textconv", f"--format={_COMMIT_MARK}%H"]
    with _git(repository, [*arguments, "--end-of-options", revision, "--"]) as process:
        assert process.stdout is not None, "stdout is a pipe"
        commit = ""
        changes: list[FileChange | None] = []
        fields = _fields(process.stdout)
        for field in fields:
            # `-z` still puts a newline between a commit's line and its first change.
            text = field.lstrip("\n")
            if text.startswith(_COMMIT_MARK):
                yield from _alone(changes)
                commit, changes = text.removeprefix(_COMMIT_MARK), []
            elif text.startswith(":"):
                changes.append(_parse_change(commit, text, next(fields, "")))
        yield from _alone(changes)


class BlobReader:
    """Reads blobs of at most `max_bytes` through one `git cat-file --batch`."""

    def __init__(self, repository: Path, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._process = _start(
            repository, ["cat-file", "--batch"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Leaving the process also closes its pipes, which ends it.
        with self._process:
            pass

    def read(self, blob: str) -> bytes | None:
        """The content, or None if the repository does not have it (a partial clone).

        Raises BlobTooLargeError; the next blob can be read all the same.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None, "stdin is a pipe"
        assert stdout is not None, "stdout is a pipe"
        stdin.write(f"{blob}\n".encode())
        stdin.flush()
        header = stdout.readline().split()
        if len(header) != 3:
            return None
        num_bytes = int(header[2])
        if num_bytes > self._max_bytes:
            _skip(stdout, num_bytes + 1)
            raise BlobTooLargeError(
                f"{blob} has {num_bytes} bytes, the limit is {self._max_bytes}; leave it out"
            )
        content = stdout.read(num_bytes)
        stdout.read(1)
        return content


def _alone(changes: Sequence[FileChange | None]) -> Iterator[FileChange]:
    if len(changes) == 1 and changes[0] is not None:
        yield changes[0]


def _parse_change(commit: str, text: str, path: str) -> FileChange | None:
    """`:old_mode new_mode old_blob new_blob status`; None unless a regular file was modified."""
    old_mode, new_mode, old_blob, new_blob, status = text[1:].split(" ")
    is_file = old_mode in _FILE_MODES and new_mode in _FILE_MODES
    if status != "M" or not is_file or old_blob == new_blob:
        return None
    return FileChange(commit, path, old_blob, new_blob)


def _fields(stream: IO[bytes]) -> Iterator[str]:
    """NUL-terminated fields of a stream; names that are no UTF-8 keep their bytes as surrogates."""
    rest = b""
    while chunk := stream.read(_CHUNK_BYTES):
        *fields, rest = (rest + chunk).split(b"\0")
        for field in fields:
            yield field.decode("utf-8", "surrogateescape")
    if rest.strip():
        yield rest.decode("utf-8", "surrogateescape")


def _skip(stream: IO[bytes], num_bytes: int) -> None:
    while num_bytes and (chunk := stream.read(min(num_bytes, _CHUNK_BYTES))):
        num_bytes -= len(chunk)


@contextmanager
def _git(repository: Path, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A git whose stdout is read; leaving early ends it, an error of its own is raised."""
    process = _start(repository, arguments, stderr=subprocess.PIPE)
    with process:
        yield process
        assert process.stderr is not None, "stderr is a pipe"
        message = process.stderr.read().decode(errors="replace").strip()
        if process.wait():
            raise GitError(f"git cannot read {repository}: {message}")


def _start(
    repository: Path,
    arguments: Sequence[str],
    *,
    stdin: int | None = subprocess.DEVNULL,
    stderr: int | None = None,
) -> subprocess.Popen[bytes]:
    # A blob that a partial clone lacks must not be fetched behind the user's back.
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.Popen(
            ["git", "-C", os.fspath(repository), *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
    except OSError as error:
        raise GitError(f"cannot run git: {error.strerror or error}") from error
