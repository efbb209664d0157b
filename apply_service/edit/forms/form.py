"""The edits of a form, under one name for each part."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

FormName = Literal["old_new", "hashline", "line_range", "json_patch"]
FORM_NAMES: tuple[FormName, ...] = get_args(FormName)
# How an update is written: as a form, or as a text.
UpdateFormat = Literal[
    "old_new",
    "hashline",
    "line_range",
    "json_patch",
    "lazy",
    "search_replace",
    "apply_patch",
    "diff",
]
LineOperation = Literal["replace", "append", "prepend"]
LINE_OPERATIONS: tuple[LineOperation, ...] = get_args(LineOperation)
PatchName = Literal["add", "remove", "replace", "move", "copy", "test"]
PATCH_NAMES: tuple[PatchName, ...] = get_args(PatchName)


class StringEdit(msgspec.Struct, frozen=True):
    """A text becomes another one, where it stands; lines end with "\\n"."""

    old: str
    new: str
    is_everywhere: bool = False


class NamedLine(msgspec.Struct, frozen=True):
    """A line by its number, from 1, and the hash that it should have, if one was sent."""

    number: int
    hash: str | None = None


class LineEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of the original, `first` to `last`, become `lines`.

    `lines` stand after `first` if the operation is "append", and before it if it is "prepend";
    without `first` at the end or the beginning of the file. `old` is what should be there.
    """

    op: LineOperation
    first: NamedLine | None
    last: NamedLine | None
    lines: tuple[str, ...]
    old: tuple[str, ...] | None = None


class PatchOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of RFC 6902; `source` is its "from"."""

    op: PatchName
    path: str
    source: str = ""
    value: Any = None


class StringForm(msgspec.Struct, frozen=True):
    """Edits of strings, each made on the result of those before it."""

    edits: tuple[StringEdit, ...]


class LineForm(msgspec.Struct, frozen=True):
    """Edits of lines, all named as they are in the original."""

    edits: tuple[LineEdit, ...]


class PatchForm(msgspec.Struct, frozen=True):
    """Operations on a JSON document, each made on the result of those before it."""

    edits: tuple[PatchOperation, ...]


Form = StringForm | LineForm | PatchForm
