"""Cases from a user's own repository: commits that changed one file, with a lazy update written."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from apply_service.edit.syntax.languages import language_of
from apply_service.edit.text.text_file import TextFile, TextFileError
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.git_history import (
    BlobReader,
    BlobTooLargeError,
    FileChange,
    single_file_changes,
)
from snippets.hunks import find_hunks
from snippets.writer import GENERATOR_VERSION, write_snippet

MAX_COMMITS = 20_000
MAX_FILE_BYTES = 200_000
MAX_HUNKS = 12
MAX_CHANGED_LINES = 150
MAX_CHANGED_SHARE = 0.5


class UnusableChangeError(Exception):
    """A change that makes no case; the message is the reason, to be counted."""


@dataclass(frozen=True, slots=True)
class GitCases:
    """The cases of a repository, newest first, and how many changes were left out for what."""

    cases: tuple[Case, ...]
    num_commits: int
    left_out: Mapping[str, int]


def read_git_cases(repository: Path, *, revision: str = "HEAD", limit: int = 200) -> GitCases:
    """At most `limit` cases; files in a known language come before all others.

    The last `MAX_COMMITS` commits that changed one file are looked at, as long as more cases in
    known languages are wanted. Raises GitError.
    """
    known: list[Case] = []
    others: list[Case] = []
    left_out: Counter[str] = Counter()
    num_commits = 0
    with BlobReader(repository, max_bytes=MAX_FILE_BYTES) as blobs:
        for change in islice(single_file_changes(repository, revision), MAX_COMMITS):
            num_commits += 1
            try:
                case = _case_of(change, blobs)
            except UnusableChangeError as error:
                left_out[str(error)] += 1
                continue
            (known if case.language else others).append(case)
            if len(known) == limit:
                break
    cases = [*known, *others[: limit - len(known)]]
    return GitCases(tuple(cases), num_commits, dict(left_out.most_common()))


def _case_of(change: FileChange, blobs: BlobReader) -> Case:
    """The case of one commit. Raises UnusableChangeError."""
    if not change.path.isprintable() or ".min." in PurePosixPath(change.path).name:
        raise UnusableChangeError("generated, or with an odd name")
    original, expected = (_read(blobs, blob) for blob in (change.old_blob, change.new_blob))
    _check_size(original, expected)
    language = language_of(change.path, None, original.lines)
    update = write_snippet(
        original.lines,
        expected.lines,
        language=language or "",
        rng=random.Random(f"{GENERATOR_VERSION}:{change.commit}:{change.path}"),
    )
    if update is None:
        raise UnusableChangeError("no lazy update would be clear")
    return Case(
        id=f"{change.commit[:12]}:{change.path}",
        path=change.path,
        original=original.decode(),
        update="\n".join(update.lines) + "\n",
        expected=expected.decode(),
        style=update.style,
        language=language,
    )


def _read(blobs: BlobReader, blob: str) -> TextFile:
    try:
        content = blobs.read(blob)
    except BlobTooLargeError as error:
        raise UnusableChangeError(f"larger than {MAX_FILE_BYTES} bytes") from error
    if content is None:
        raise UnusableChangeError("not in this clone")
    try:
        file = TextFile.from_bytes(content)
    except TextFileError as error:
        raise UnusableChangeError("binary") from error
    if "\0" in file.decode():
        raise UnusableChangeError("binary")
    if not is_written_by_people(file.decode()):
        raise UnusableChangeError("generated, or with an odd name")
    return file


def _check_size(original: TextFile, expected: TextFile) -> None:
    """Only edits that an agent would send: not a new text, not a new style of line endings."""
    if not original.lines or original.join(expected.lines) != expected.decode():
        raise UnusableChangeError("line endings or the final newline changed")
    hunks = find_hunks(original.lines, expected.lines)
    num_changed = sum(hunk.num_changed for hunk in hunks)
    num_lines = len(original.lines) + len(expected.lines)
    is_rewrite = num_changed > min(MAX_CHANGED_LINES, MAX_CHANGED_SHARE * num_lines)
    if len(hunks) > MAX_HUNKS or is_rewrite:
        raise UnusableChangeError("a rewrite")


def describe_left_out(left_out: Mapping[str, int]) -> str:
    """One line about what was left out, "" if nothing was."""
    return ", ".join(_phrases(left_out.items()))


def _phrases(counts: Iterable[tuple[str, int]]) -> Iterator[str]:
    return (f"{count} {reason}" for reason, count in counts)


MAX_LINE_LENGTH = 300
_GENERATED = re.compile(
    r"generated (by|from|file|using)|auto-?generated|@generated|do not (edit|modify)"
    r"|sourceMappingURL|__esModule|__importDefault|swiftlint:disable all",
    re.IGNORECASE,
)


def is_written_by_people(text: str) -> bool:
    """True if a file looks neither generated nor minified."""
    lines = text.split("\n")
    if max(map(len, lines)) > MAX_LINE_LENGTH:
        return False
    return not _GENERATED.search("\n".join([*lines[:20], *lines[-3:]]))
