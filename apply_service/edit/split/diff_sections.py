"""Cuts a unified diff at its files, also one that git wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from apply_service.edit.read.diff_format import file_name_of
from apply_service.edit.read.fences import is_fence
from apply_service.edit.read.snippet_error import (
    MalformedSnippetError,
    UnsupportedOperationError,
)
from apply_service.edit.split.section import FileAction, FileSection

_GIT = "diff --git "
_MISSING = "/dev/null"
_RENAME = re.compile(r"rename (?P<side>from|to) +(?P<name>\S.*)")
_BINARY = re.compile(r"GIT binary patch|Binary files .* differ")
_NO_NEWLINE = re.compile(r"\\ No newline at end of file\s*")
_EMPTY = re.compile(r"(?P<kind>new|deleted) file mode \d+")


def is_diff_of_files(lines: Sequence[str]) -> bool:
    """True if a line begins the part of a file."""
    return next(_starts(lines), None) is not None


def diff_sections(lines: Sequence[str]) -> list[FileSection]:
    """The parts of the files, in order.

    Raises MalformedSnippetError for text before the first part, UnsupportedOperationError for
    binary files and for changes of rights alone; both name the line.
    """
    starts = list(_starts(lines))
    for number, line in enumerate(lines[: starts[0]] if starts else lines, start=1):
        if line.strip() and not is_fence(line):
            raise MalformedSnippetError(
                f"line {number} of the update belongs to no file; begin with `--- a/PATH` and"
                " `+++ b/PATH`"
            )
    ends = [*starts[1:], len(lines)]
    return [_section(start + 1, lines[start:end]) for start, end in zip(starts, ends, strict=True)]


def _starts(lines: Sequence[str]) -> Iterator[int]:
    """The places of the first lines of all parts."""
    git_line: str | None = None  # of a part whose names have not come yet
    for place, line in enumerate(lines):
        if line.startswith(_GIT):
            git_line = line
            yield place
        elif _is_named(lines, place):
            names = {file_name_of(lines[place]), file_name_of(lines[place + 1])} - {_MISSING}
            if git_line is None or not any(name in git_line for name in names):
                yield place
            git_line = None


def _is_named(lines: Sequence[str], place: int) -> bool:
    """True if the two names of a file stand here; lines of a hunk may look like one of them."""
    head = lines[place : place + 3]
    return (
        len(head) > 1
        and head[0].startswith("--- ")
        and head[1].startswith("+++ ")
        and (len(head) == 2 or head[2].startswith("@@"))
    )


def _section(number: int, lines: Sequence[str]) -> FileSection:
    named = next((place for place in range(len(lines)) if _is_named(lines, place)), None)
    heads = lines if named is None else lines[:named]
    if any(_BINARY.match(line) for line in lines):
        raise UnsupportedOperationError(
            f"line {number} of the update changes a binary file; this service edits text"
        )
    found_renames = filter(None, map(_RENAME.fullmatch, heads))
    renames = {found["side"]: found["name"].rstrip() for found in found_renames}
    if named is None:
        return _section_without_hunks(number, heads, renames)
    old, new = file_name_of(lines[named]), file_name_of(lines[named + 1])
    body = tuple(lines[named + 2 :])
    if old == _MISSING:
        added = tuple(line[1:] for line in body if line.startswith("+"))
        return FileSection(
            action="add",
            path=new,
            number=number,
            lines=added,
            has_final_newline=not any(map(_NO_NEWLINE.fullmatch, body)),
        )
    if new == _MISSING:
        return FileSection(action="delete", path=old, number=number, lines=())
    if len(renames) == 2:
        old, new = renames["from"], renames["to"]
        return FileSection(action="move", path=old, number=number, lines=body, new_path=new)
    # Names such as "original.py" and "updated.py" are those of one file too.
    return FileSection(action="update", path=new, number=number, lines=body)


def _section_without_hunks(
    number: int, heads: Sequence[str], renames: dict[str, str]
) -> FileSection:
    if len(renames) == 2:
        return FileSection(
            action="move",
            path=renames["from"],
            number=number,
            lines=(),
            new_path=renames["to"],
        )
    names = heads[0].removeprefix(_GIT).split(" b/", 1)
    kinds = [found["kind"] for line in heads if (found := _EMPTY.fullmatch(line.strip()))]
    if not kinds or len(names) != 2:
        raise UnsupportedOperationError(
            f"line {number} of the update changes no text of its file; this service changes no"
            " rights of files"
        )
    action: FileAction = "add" if kinds[0] == "new" else "delete"
    return FileSection(action=action, path=names[1].strip(), number=number, lines=())
