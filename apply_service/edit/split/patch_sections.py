"""Cuts a patch between `*** Begin Patch` and `*** End Patch` at its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from apply_service.edit.read.fences import is_fence
from apply_service.edit.read.snippet_error import MalformedSnippetError
from apply_service.edit.split.section import FileAction, FileSection

_BEGIN = re.compile(r"\*\*\* Begin Patch\s*")
_END = re.compile(r"\*\*\* End Patch\s*")
_HEAD = re.compile(r"\*\*\* (?P<verb>Update|Add|Delete) File:(?P<name>.*)")
_MOVE = re.compile(r"\*\*\* Move to:(?P<name>.*)")
_ACTIONS: dict[str, FileAction] = {"Update": "update", "Add": "add", "Delete": "delete"}


def is_patch(lines: Sequence[str]) -> bool:
    """True if the first line with text, fences aside, begins a patch or one of its files."""
    filled = (line for line in lines if line.strip() and not is_fence(line))
    first = next(filled, "")
    return bool(_BEGIN.fullmatch(first) or _HEAD.fullmatch(first))


def patch_sections(lines: Sequence[str]) -> list[FileSection]:
    """The parts of the files, in order. Raises MalformedSnippetError with the line."""
    heads: list[tuple[int, re.Match[str]]] = []
    bodies: list[list[str]] = []
    for number, line in _inside(lines):
        head = _HEAD.fullmatch(line)
        if head is not None:
            heads.append((number, head))
            bodies.append([])
        elif bodies:
            bodies[-1].append(line)
        elif line.strip() and not is_fence(line):
            raise MalformedSnippetError(
                f"line {number} of the update belongs to no file; begin with `*** Update File:"
                " PATH`, `*** Add File: PATH` or `*** Delete File: PATH`"
            )
    return [
        _section(number, head, body) for (number, head), body in zip(heads, bodies, strict=True)
    ]


def _inside(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The numbered lines between begin and end; several patches in a row count as one."""
    has_begun = is_open = False
    for number, line in enumerate(lines, start=1):
        if _BEGIN.fullmatch(line):
            has_begun = is_open = True
        elif _END.fullmatch(line):
            is_open = False
        elif is_open or not has_begun:
            yield number, line
        elif line.strip() and not is_fence(line):
            raise MalformedSnippetError(
                f"line {number} of the update stands after `*** End Patch`; put it before the end,"
                " or leave it out"
            )
    if is_open:
        raise MalformedSnippetError(
            f"the patch ends after {len(lines)} lines without `*** End Patch`, so part of it may be"
            " missing; send all of it"
        )


def _section(number: int, head: re.Match[str], body: Sequence[str]) -> FileSection:
    action, name = _ACTIONS[head["verb"]], _name_in(head)
    if not name:
        raise MalformedSnippetError(f"line {number} of the update names no file; write its path")
    move = _MOVE.fullmatch(body[0]) if body else None
    if move is not None and action == "update":
        return FileSection(
            action="move",
            path=name,
            number=number,
            lines=tuple(body[1:]),
            new_path=_name_in(move),
        )
    lines = _added(number, body) if action == "add" else tuple(body)
    section = FileSection(action=action, path=name, number=number, lines=lines)
    if action == "delete" and section.is_changed:
        raise MalformedSnippetError(
            f"line {number} of the update deletes {name}, and lines follow; a deletion has none"
        )
    return section


def _name_in(head: re.Match[str]) -> str:
    return head["name"].strip().strip("`\"'")


def _added(number: int, body: Sequence[str]) -> tuple[str, ...]:
    """The lines of a new file; blank ones may lack their sign."""
    kept = list(body)
    while kept and not kept[-1].strip():
        kept.pop()
    for place, line in enumerate(kept, start=1):
        if line.strip() and not line.startswith("+"):
            raise MalformedSnippetError(
                f"line {number + place} of the update is a line of a new file and does not begin"
                " with +"
            )
    return tuple(line.removeprefix("+") for line in kept)
