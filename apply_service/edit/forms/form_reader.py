"""Reads the forms of agents' edit tools, under the names that the tools have for their parts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

import msgspec

from apply_service.edit.forms.form import (
    FORM_NAMES,
    LINE_OPERATIONS,
    PATCH_NAMES,
    Form,
    FormName,
    LineEdit,
    LineForm,
    LineOperation,
    NamedLine,
    PatchForm,
    PatchOperation,
    StringEdit,
    StringForm,
)
from apply_service.edit.forms.reading import shown
from apply_service.edit.read.snippet_error import EmptySnippetError, MalformedSnippetError
from apply_service.edit.text.lone_surrogates import find_lone_surrogate

MAX_EDITS = 1000
_USUAL_NAMES = {
    "oldstring": "old",
    "oldstr": "old",
    "oldtext": "old",
    "newstring": "new",
    "newstr": "new",
    "newtext": "new",
    "inserttext": "new",
    "text": "new",
    "lines": "new",
    "newlines": "new",
    "content": "new",
    "replaceall": "all",
    "startline": "start",
    "endline": "end",
    "insertline": "insert",
    "pos": "start",
    "anchor": "start",
    "startanchor": "start",
    "endanchor": "end",
}
# Members that say which file or tool is meant.
_IGNORED = frozenset({"filepath", "path", "targetfile", "file", "command", "instruction"})
_NAMED_OPERATIONS: dict[str, LineOperation] = {
    "set_line": "replace",
    "replace_lines": "replace",
    "insert_after": "append",
    "insert_before": "prepend",
}
_LINE_NAME = re.compile(r"\s*(\d{1,9})[:#]([0-9A-Za-z]{1,64})(?:\|.*)?\s*", re.DOTALL)
# What is no escape of a JSON pointer.
_NO_ESCAPE = re.compile("~(?![01])")
_EXAMPLES: dict[FormName, str] = {
    "old_new": '{"old_string": "a", "new_string": "b"}',
    "hashline": '{"op": "replace", "pos": "12:9f3a", "lines": ["b"]}',
    "line_range": '{"start_line": 12, "end_line": 14, "new_string": "b"}',
    "json_patch": '{"op": "replace", "path": "/a", "value": 1}',
}


def read_form(text: str, name: FormName | None = None) -> Form:
    """The edits in JSON; without a name the first one tells the form.

    Raises EmptySnippetError or MalformedSnippetError.
    """
    try:
        edits = _edits_in(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedSnippetError(
            f"the update is no JSON ({_why_no_json(text) or error}); send an edit, or a list of"
            f" edits, such as {_EXAMPLES[name or 'old_new']}"
        ) from error
    if len(edits) > MAX_EDITS:
        raise MalformedSnippetError(
            f"the update has {len(edits)} edits, the limit is {MAX_EDITS}; send several requests"
        )
    name = name or _name_of(edits[0])
    sent = [_Edit(number, name, edit) for number, edit in enumerate(edits, start=1)]
    if name == "old_new":
        return StringForm(tuple(map(_string_edit, sent)))
    if name == "json_patch":
        return PatchForm(tuple(map(_patch_operation, sent)))
    return LineForm(tuple(map(_hash_edit if name == "hashline" else _range_edit, sent)))


def form_of(sent: object) -> FormName:
    """The form of decoded JSON, by its first edit.

    Raises EmptySnippetError or MalformedSnippetError.
    """
    return _name_of(_edits_in(sent)[0])


def _why_no_json(text: str) -> str | None:
    """Where it has half of a surrogate pair, if it has one."""
    try:
        found = find_lone_surrogate(json.loads(text), whole="it")
    except (ValueError, RecursionError):
        return None
    return None if found is None else found[1]


def _edits_in(sent: object) -> list[object]:
    if isinstance(sent, dict) and "edits" in sent:
        sent = sent["edits"]
    edits = sent if isinstance(sent, list) else [sent]
    if not edits:
        raise EmptySnippetError("the update has no edits; send at least one")
    return edits


def _name_of(edit: object) -> FormName:
    members = set(edit) if isinstance(edit, dict) else set()
    keys = {_squeezed(key) for key in members}
    if keys & {"startline", "insertline"}:
        return "line_range"
    if members & set(_NAMED_OPERATIONS) or keys & {"pos", "anchor"}:
        return "hashline"
    if "op" in keys:
        return "hashline" if keys & {"lines", "newtext"} else "json_patch"
    if keys & {"oldstring", "oldstr", "oldtext"}:
        return "old_new"
    raise MalformedSnippetError(
        f"the first edit ({shown(edit)}) belongs to no form; send one of "
        + "; ".join(f"{name}: {_EXAMPLES[name]}" for name in FORM_NAMES)
    )


def _squeezed(key: str) -> str:
    return key.replace("_", "").lower()


class _Edit:
    """One edit as it was sent, the `number`-th from 1."""

    def __init__(self, number: int, name: FormName, sent: object) -> None:
        self._number = number
        self._name = name
        if not isinstance(sent, dict):
            self.fail(f"is no object but {shown(sent)}")
        self.sent: Mapping[str, Any] = sent

    def fail(self, what: str) -> NoReturn:
        """Raise MalformedSnippetError."""
        raise MalformedSnippetError(
            f"edit {self._number} of the update {what}; an example: {_EXAMPLES[self._name]}"
        )

    def inner(self, key: str) -> _Edit:
        """The object under a member that names the operation."""
        if len(self.sent) > 1:
            self.fail(f"has members beside {key!r}")
        return _Edit(self._number, self._name, self.sent[key])

    def members(self, known: Collection[str]) -> dict[str, Any]:
        """The members under their usual names."""
        found: dict[str, Any] = {}
        for key, value in self.sent.items():
            name = _USUAL_NAMES.get(_squeezed(key), _squeezed(key))
            if name in found:
                self.fail(f"has two members that mean the same, one of them {shown(key)}")
            if name in known:
                found[name] = value
            elif _squeezed(key) not in _IGNORED:
                self.fail(f"has the unknown member {shown(key)}")
        return found

    def text(self, value: object, what: str) -> str:
        """A text with "\\n" as the end of its lines."""
        if not isinstance(value, str):
            self.fail(f"needs {what} as text, not {shown(value)}")
        return value.replace("\r\n", "\n")

    def lines(self, members: Mapping[str, Any]) -> tuple[str, ...]:
        """The new lines, if any; a text ends its last line or not, and an empty one has none."""
        new = members.get("new")
        if isinstance(new, list):
            texts = [self.text(line, "each line") for line in new]
            return tuple(part for text in texts for part in text.removesuffix("\n").split("\n"))
        text = "" if new is None else self.text(new, "its new lines")
        return tuple(text.removesuffix("\n").split("\n")) if text else ()

    def line_number(self, value: object, what: str, *, least: int = 1) -> int:
        """A line number of at least `least`."""
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(f"needs {what} as a number of at least {least}, not {shown(value)}")
        return value

    def line_name(self, value: object) -> NamedLine | None:
        """A line as NUMBER:HASH; None if none was sent."""
        if value is None:
            return None
        match = _LINE_NAME.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[1] == "0":
            self.fail(f"names a line {shown(value)}; write NUMBER:HASH, numbers from 1")
        return NamedLine(int(match[1]), match[2].lower())

    def pointer(self, value: object, what: str) -> str:
        """A JSON pointer (RFC 6901)."""
        if not isinstance(value, str) or (value and not value.startswith("/")):
            self.fail(f"needs {what} as a JSON pointer such as /a/0, not {shown(value)}")
        if _NO_ESCAPE.search(value):
            self.fail(f"has the pointer {shown(value)}; its `~` is written ~0, a `/` in a name ~1")
        return value


def _string_edit(edit: _Edit) -> StringEdit:
    members = edit.members(("old", "new", "all"))
    is_everywhere = members.get("all") or False
    if not isinstance(is_everywhere, bool):
        edit.fail(f"needs replace_all as true or false, not {shown(is_everywhere)}")
    old = edit.text(members.get("old"), "old_string")
    return StringEdit(old, edit.text(members.get("new"), "new_string"), is_everywhere)


def _range_edit(edit: _Edit) -> LineEdit:
    members = edit.members(("start", "end", "insert", "old", "new"))
    if "new" not in members:
        edit.fail("has no new lines; to delete lines, send an empty text")
    lines = edit.lines(members)
    if "insert" in members:
        if members.keys() & {"start", "end", "old"}:
            edit.fail("has insert_line beside lines to replace")
        place = edit.line_number(members["insert"], "insert_line", least=0)
        first = NamedLine(place) if place else None
        return LineEdit(op="append" if place else "prepend", first=first, last=None, lines=lines)
    start = edit.line_number(members.get("start"), "start_line")
    end = edit.line_number(members.get("end", start), "end_line")
    old = members.get("old")
    return _replacement(
        edit,
        NamedLine(start),
        NamedLine(end),
        lines,
        old=None
        if old is None
        else tuple(edit.text(old, "old_string").removesuffix("\n").split("\n")),
    )


def _hash_edit(edit: _Edit) -> LineEdit:
    named = next((key for key in edit.sent if key in _NAMED_OPERATIONS), None)
    if named is None:
        operation = next((one for one in LINE_OPERATIONS if one == edit.sent.get("op")), None)
    else:
        operation, edit = _NAMED_OPERATIONS[named], edit.inner(named)
    if operation is None:
        listed = ", ".join(LINE_OPERATIONS)
        edit.fail(f"has the op {shown(edit.sent.get('op'))}; it is one of {listed}")
    members = edit.members(("op", "start", "end", "new"))
    first, last = edit.line_name(members.get("start")), edit.line_name(members.get("end"))
    lines = edit.lines(members)
    if operation == "replace":
        if first is None:
            edit.fail("needs pos, the line to replace")
        blank = ("",) if named == "set_line" else ()
        return _replacement(edit, first, last or first, lines or blank)
    if last is not None:
        edit.fail(f"has an end, which {operation} does not take")
    return LineEdit(op=operation, first=first, last=None, lines=lines)


def _replacement(
    edit: _Edit,
    first: NamedLine,
    last: NamedLine,
    lines: tuple[str, ...],
    old: tuple[str, ...] | None = None,
) -> LineEdit:
    if last.number < first.number:
        edit.fail(f"ends on line {last.number}, before it starts on line {first.number}")
    return LineEdit(op="replace", first=first, last=last, lines=lines, old=old)


def _patch_operation(edit: _Edit) -> PatchOperation:
    sent = edit.sent
    name = next((name for name in PATCH_NAMES if name == sent.get("op")), None)
    if name is None:
        edit.fail(f"has the op {shown(sent.get('op'))}; it is one of {', '.join(PATCH_NAMES)}")
    path = edit.pointer(sent.get("path"), "path")
    source = edit.pointer(sent.get("from"), "from") if name in ("move", "copy") else ""
    if name in ("add", "replace", "test") and "value" not in sent:
        edit.fail(f"needs a value to {name}")
    if name == "move" and path.startswith(source + "/"):
        edit.fail("moves a value into itself")
    return PatchOperation(op=name, path=path, source=source, value=sent.get("value"))
