"""Splits an update of several files into one change of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.edit.read.fences import is_fence, is_same_path
from apply_service.edit.read.snippet_error import (
    MalformedSnippetError,
    UnsupportedOperationError,
)
from apply_service.edit.split.diff_sections import diff_sections, is_diff_of_files
from apply_service.edit.split.patch_sections import is_patch, patch_sections
from apply_service.edit.split.section import FileAction, FileSection
from apply_service.edit.text.words import counted

SplitFormat = Literal["apply_patch", "diff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What becomes of one file. `update` is what it alone is edited by.

    There is none for a deletion, a move without changes and a new file that is empty. A new file
    has no original, and its update is a patch of its own.
    """

    action: FileAction
    path: str
    update: str | None
    format: SplitFormat
    new_path: str | None = None


def split_update(
    update: str, *, has_text: Mapping[str, bool], update_format: SplitFormat | None = None
) -> list[FileChange]:
    """The changes in the order of the update, with the paths of `has_text` where they are there.

    `has_text` says of each file that was sent whether there is anything in it. Raises
    MalformedSnippetError for an update that names no files or names one in two ways, and
    UnsupportedOperationError for a file that is changed and was not sent.
    """
    lines = _without_fence([line.removesuffix("\r") for line in update.split("\n")])
    if update_format is None:
        if not is_patch(lines) and not is_diff_of_files(lines):
            raise MalformedSnippetError(
                "the update of several files names none; send a `*** Begin Patch` patch or a"
                " unified diff with `--- a/PATH` and `+++ b/PATH`, or an `update` for each file"
            )
        update_format = "apply_patch" if is_patch(lines) else "diff"
    sections = patch_sections(lines) if update_format == "apply_patch" else diff_sections(lines)
    if not sections:
        raise MalformedSnippetError(f"the update in the format {update_format} names no file")
    by_path: dict[str, list[FileSection]] = {}
    for section in sections:
        path = _path_of(section, has_text)
        by_path.setdefault(path, []).append(section)
    _check_new_paths(sections, {**has_text, **dict.fromkeys(by_path, True)})
    return [_change(path, parts, update_format) for path, parts in by_path.items()]


def _path_of(section: FileSection, has_text: Mapping[str, bool]) -> str:
    """The path under which the file of a part was sent. Raises UnsupportedOperationError."""
    found = _sent_path(section.path, has_text)
    place = f"line {section.number} of the update"
    if section.action == "add":
        if found is not None and has_text[found]:
            raise UnsupportedOperationError(
                f"{place} adds {section.path}, and {found} was sent with text in it; update it, or"
                " leave it out of `files`"
            )
        return found or section.path
    if found is None and section.action != "delete":
        raise UnsupportedOperationError(
            f"{place} changes {section.path}, which is none of the {counted(len(has_text), 'file')}"
            " sent; add it with its original to `files`"
        )
    return found or section.path


def _sent_path(name: str, paths: Mapping[str, bool]) -> str | None:
    if name in paths:
        return name
    alike = [path for path in paths if is_same_path(name, path)]
    return alike[0] if len(alike) == 1 else None


def _check_new_paths(sections: Sequence[FileSection], known: Mapping[str, bool]) -> None:
    """Check that no file is moved onto another one."""
    targets: set[str] = set()
    for section in sections:
        target = section.new_path
        if target is None:
            continue
        if not target or target in known or target in targets:
            raise UnsupportedOperationError(
                f"line {section.number} of the update moves {section.path} to {target!r}, which"
                " is no free path; choose one that no other file of the request has"
            )
        targets.add(target)


def _change(path: str, parts: Sequence[FileSection], update_format: SplitFormat) -> FileChange:
    actions = {part.action for part in parts}
    if len(parts) > 1 and actions != {"update"}:
        raise MalformedSnippetError(
            f"line {parts[1].number} of the update names {path} again; only updates of a file may"
            " come more than once"
        )
    first, lines = parts[0], [line for part in parts for line in part.lines]
    if first.action == "add":
        update_format = "apply_patch"
        lines = [f"+{line}" for line in lines]
    return FileChange(
        action=first.action,
        path=path,
        update=_update_of(first, path, lines, update_format),
        format=update_format,
        new_path=first.new_path,
    )


def _update_of(
    first: FileSection, path: str, lines: Sequence[str], update_format: SplitFormat
) -> str | None:
    """The update of one file, under the path that it was sent with."""
    if first.action == "delete" or (first.action == "add" and not lines):
        return None
    if first.action == "move" and not first.is_changed:
        return None
    if update_format == "diff":
        return "\n".join([f"--- a/{path}", f"+++ b/{path}", *lines])
    head = "*** Add File" if first.action == "add" else "*** Update File"
    patch = "\n".join(["*** Begin Patch", f"{head}: {path}", *lines, "*** End Patch"])
    # The newline at the end of an update is that of a new file.
    return f"{patch}\n" if first.has_final_newline else patch


def _without_fence(lines: list[str]) -> list[str]:
    """The lines, with blank ones in the place of a fence around all of them."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    if len(filled) > 1 and all(is_fence(lines[place]) for place in (filled[0], filled[-1])):
        lines[filled[0]] = lines[filled[-1]] = ""
    return lines
