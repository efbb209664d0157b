"""Splits patches between `*** Begin Patch` and `*** End Patch` into one change a file.

The service edits one file a request. What a patch says about several files, and that it adds or
deletes some, is read here; the hunks of a file are left to the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from apply_client.errors import ApplyClientError
from apply_client.shown_text import shown_line

Action = Literal["update", "add", "delete"]

MAX_CHANGES = 200

_BEGIN = re.compile(r"\*\*\* Begin Patch\s*")
_END = re.compile(r"\*\*\* End Patch\s*")
_SECTION = re.compile(r"\*\*\* (?P<verb>Update|Add|Delete) File:(?P<name>.*)")
_MOVE = re.compile(r"\*\*\* (?:Move|Rename|Copy)(?: File| to)?:.*")
_FENCE = re.compile(r"\s*(?:```|~~~).*")


class PatchError(ApplyClientError):
    """The patch cannot be split into changes of single files; no part of it was done."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A patch's change of one file.

    `text` is a whole patch of this file for `update`, the content for `add`, and empty for
    `delete`.
    """

    action: Action
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str


def is_patch(update: str) -> bool:
    """True if an update begins like a patch, fence lines aside."""
    first = next(
        (line for line in update.split("\n") if line.strip() and not _FENCE.fullmatch(line)), ""
    )
    return bool(_BEGIN.fullmatch(first) or _SECTION.fullmatch(first))


def split_patch(update: str) -> tuple[FileChange, ...] | None:
    """The changes of a patch in its order, or None for an update in another format.

    A path that comes again is changed again, on the result of before. Raises PatchError for moves,
    for a patch that is cut off and for text that belongs to no file.
    """
    if not is_patch(update):
        return None
    sections = _sections(_body(update))
    if not sections:
        raise PatchError(
            "the patch names no file; begin each part with `*** Update File: PATH`,"
            " `*** Add File: PATH` or `*** Delete File: PATH`"
        )
    if len(sections) > MAX_CHANGES:
        raise PatchError(
            f"the patch changes {len(sections)} files, at most {MAX_CHANGES} are taken; send"
            " several patches"
        )
    changes = tuple(_change(head, lines) for head, lines in sections)
    _check_repeats(changes)
    return changes


def _body(update: str) -> Iterator[_Line]:
    """The lines between begin and end; several patches in a row count as one."""
    has_begun = is_open = False
    for number, text in enumerate(update.split("\n"), start=1):
        plain = text.removesuffix("\r")
        if _BEGIN.fullmatch(plain):
            has_begun = is_open = True
        elif _END.fullmatch(plain):
            is_open = False
        elif is_open or not has_begun:
            yield _Line(number, text)
        elif plain.strip() and not _FENCE.fullmatch(plain):
            raise PatchError(
                f"line {number} of the patch (`{_shown(plain)}`) stands after `*** End Patch`; put"
                " everything before it"
            )
    if is_open:
        raise PatchError(
            "the patch ends without `*** End Patch`, so part of it may be missing; send all of it"
        )


def _sections(body: Iterator[_Line]) -> list[tuple[_Line, list[_Line]]]:
    """The head of each file's part, and the lines under it."""
    sections: list[tuple[_Line, list[_Line]]] = []
    for line in body:
        plain = line.text.removesuffix("\r")
        if _MOVE.fullmatch(plain):
            raise PatchError(
                f"line {line.number} of the patch (`{_shown(plain)}`) moves a file, which is not"
                " done here; move it yourself and send the patch for its new path"
            )
        if _SECTION.fullmatch(plain):
            sections.append((line, []))
        elif sections:
            sections[-1][1].append(line)
        elif plain.strip() and not _FENCE.fullmatch(plain):
            raise PatchError(
                f"line {line.number} of the patch (`{_shown(plain)}`) belongs to no file; begin"
                " with `*** Update File: PATH`"
            )
    return sections


def _change(head: _Line, lines: Sequence[_Line]) -> FileChange:
    match = _SECTION.fullmatch(head.text.removesuffix("\r"))
    assert match is not None, "sections begin with their heads"
    name = match["name"].strip().strip("`\"'")
    if not name:
        raise PatchError(f"line {head.number} of the patch names no file; write its path")
    if match["verb"] == "Update":
        body = [head.text, *(line.text for line in lines)]
        return FileChange("update", name, "\n".join(["*** Begin Patch", *body, "*** End Patch"]))
    if match["verb"] == "Add":
        return FileChange("add", name, _content(lines))
    for line in lines:
        if line.text.strip() and not _FENCE.fullmatch(line.text):
            raise PatchError(
                f"line {line.number} of the patch (`{_shown(line.text)}`) stands under the deletion"
                f" of {_shown(name)}; a deletion has no lines"
            )
    return FileChange("delete", name, "")


def _content(lines: Sequence[_Line]) -> str:
    """The text of a new file: lines that begin with +, and blank ones between them."""
    kept = list(lines)
    while kept and (not kept[-1].text.strip() or _FENCE.fullmatch(kept[-1].text)):
        kept.pop()
    for line in kept:
        if line.text.strip() and not line.text.startswith("+"):
            raise PatchError(
                f"line {line.number} of the patch (`{_shown(line.text)}`) is a line of a new file"
                " and does not begin with +"
            )
    return "".join(f"{line.text.removeprefix('+')}\n" for line in kept)


def _check_repeats(changes: Sequence[FileChange]) -> None:
    """Check that only updates repeat: other changes would depend on how far the patch came."""
    actions: dict[str, set[Action]] = {}
    for change in changes:
        before = actions.setdefault(change.path, set())
        if before and (before | {change.action}) != {"update"}:
            raise PatchError(
                f"the patch names {_shown(change.path)} again, to {change.action} it; only updates"
                " of a file may come more than once"
            )
        before.add(change.action)


def _shown(text: str) -> str:
    return shown_line(text.strip())
