"""Edits under the names that agents' tools give their parts, and what is wrong with bad ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apply_service.edit.forms.form import (
    FormName,
    LineEdit,
    LineForm,
    NamedLine,
    PatchForm,
    PatchOperation,
    StringEdit,
    StringForm,
)
from apply_service.edit.forms.form_reader import MAX_EDITS, form_of, read_form
from apply_service.edit.read.snippet_error import EmptySnippetError, MalformedSnippetError

STRINGS = StringForm((StringEdit("a", "b", is_everywhere=True),))
REPLACED = LineForm(
    (LineEdit(op="replace", first=NamedLine(2, "9f3a"), last=NamedLine(4, "07c1"), lines=("x",)),)
)


@pytest.mark.parametrize(
    ("sent", "name", "form"),
    [
        ({"old_string": "a", "new_string": "b", "replace_all": True}, "old_new", STRINGS),
        ({"oldString": "a", "newString": "b", "replaceAll": True}, "old_new", STRINGS),
        (
            {"file_path": "x.py", "edits": [{"oldText": "a", "newText": "b", "replaceAll": True}]},
            "old_new",
            STRINGS,
        ),
        (
            [{"command": "str_replace", "path": "x.py", "old_str": "a\r\n", "new_str": "b"}],
            "old_new",
            StringForm((StringEdit("a\n", "b"),)),
        ),
        (
            [{"op": "replace", "pos": "2:9f3a", "end": "4#07C1|text", "lines": ["x"]}],
            "hashline",
            REPLACED,
        ),
        (
            {
                "replace_lines": {
                    "start_anchor": "2:9f3a",
                    "end_anchor": "4:07c1",
                    "new_text": "x\n",
                }
            },
            "hashline",
            REPLACED,
        ),
        (
            {"set_line": {"anchor": "2:9f3a", "new_text": ""}},
            "hashline",
            LineForm(
                (
                    LineEdit(
                        op="replace",
                        first=NamedLine(2, "9f3a"),
                        last=NamedLine(2, "9f3a"),
                        lines=("",),
                    ),
                )
            ),
        ),
        (
            [{"op": "append", "lines": ["x", "y\nz"]}],
            "hashline",
            LineForm((LineEdit(op="append", first=None, last=None, lines=("x", "y", "z")),)),
        ),
        (
            {"start_line": 3, "new_string": "", "old_string": "c\n"},
            "line_range",
            LineForm(
                (
                    LineEdit(
                        op="replace", first=NamedLine(3), last=NamedLine(3), lines=(), old=("c",)
                    ),
                )
            ),
        ),
        (
            {"insert_line": 0, "new_str": "x\n\n"},
            "line_range",
            LineForm((LineEdit(op="prepend", first=None, last=None, lines=("x", "")),)),
        ),
        (
            [{"op": "move", "from": "/a", "path": "/b"}, {"op": "test", "path": "", "value": None}],
            "json_patch",
            PatchForm(
                (
                    PatchOperation(op="move", path="/b", source="/a"),
                    PatchOperation(op="test", path=""),
                )
            ),
        ),
    ],
)
def test_a_form_is_read_under_any_of_its_names(
    sent: Any, name: FormName, form: StringForm | LineForm | PatchForm
) -> None:
    assert form_of(sent) == name
    assert read_form(json.dumps(sent)) == read_form(json.dumps(sent), name) == form


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (3, "belongs to no form"),
        ({"find": "a", "replace": "b"}, "belongs to no form"),
        ([{"old_string": "a", "new_string": "b"}, 3], "edit 2 of the update is no object but 3"),
        ({"old_string": "a"}, "needs new_string as text, not nothing"),
        ({"old_string": 1, "new_string": "b"}, "needs old_string as text, not 1"),
        ({"old_string": "a", "new_string": "b", "replace_all": 1}, "needs replace_all as true"),
        ({"old_string": "a", "old_str": "a", "new_string": "b"}, "two members that mean the same"),
        ({"old_string": "a", "new_string": "b", "count": 2}, "has the unknown member 'count'"),
        ({"start_line": 3, "end_line": 2, "new_string": "b"}, "ends on line 2, before it starts"),
        ({"start_line": 0, "new_string": "b"}, "needs start_line as a number of at least 1, not 0"),
        ({"start_line": True, "new_string": "b"}, "needs start_line as a number"),
        ({"start_line": 1, "end_line": 2}, "has no new lines; to delete lines, send an empty text"),
        ({"insert_line": 1, "start_line": 1, "new_str": "b"}, "has insert_line beside lines"),
        ({"op": "replace", "pos": "9f3a", "lines": []}, "names a line '9f3a'; write NUMBER:HASH"),
        ({"op": "replace", "pos": "0:9f3a", "lines": []}, "numbers from 1"),
        ({"op": "replace", "lines": ["b"]}, "needs pos, the line to replace"),
        ({"op": "delete", "pos": "2:9f3a", "lines": []}, "has the op 'delete'; it is one of"),
        ({"op": "append", "pos": "2:9f3a", "end": "3:9f3a", "lines": []}, "append does not take"),
        ({"op": "replace", "pos": "2:9f3a", "lines": [1]}, "needs each line as text, not 1"),
        ({"set_line": {"anchor": "2:9f3a", "new_text": "b"}, "x": 1}, "members beside 'set_line'"),
        ({"op": "merge", "path": "/a"}, "has the op 'merge'; it is one of add, remove"),
        ({"op": "add", "path": "a", "value": 1}, "needs path as a JSON pointer such as /a/0"),
        ({"op": "remove", "path": "/a~2b"}, "has the pointer '/a~2b'; its `~` is written ~0"),
        ({"op": "remove", "path": "/a~"}, "has the pointer '/a~'"),
        ({"op": "remove", "path": "/~0/~"}, "has the pointer '/~0/~'"),
        ({"op": "move", "from": "/a~b", "path": "/a"}, "has the pointer '/a~b'"),
        ({"old_string": "a", "new_string": "b", "x" * 10_000: 2}, "has the unknown member 'xxx"),
        ({"op": "add", "path": "/a"}, "needs a value to add"),
        ({"op": "copy", "path": "/a"}, "needs from as a JSON pointer"),
        ({"op": "move", "from": "/a", "path": "/a/b"}, "moves a value into itself"),
    ],
)
def test_a_bad_edit_is_named_with_what_is_wrong_and_an_example(sent: Any, said: str) -> None:
    with pytest.raises(MalformedSnippetError, match=r"send one of|an example: ") as raised:
        read_form(json.dumps(sent))
    assert said in str(raised.value)
    assert len(str(raised.value).encode()) < 800


def test_what_is_no_list_of_edits_is_refused() -> None:
    with pytest.raises(EmptySnippetError, match="send at least one"):
        read_form("[]")
    with pytest.raises(MalformedSnippetError, match="no JSON"):
        read_form("<<<<<<< SEARCH", "old_new")
    with pytest.raises(MalformedSnippetError, match="path has a lone surrogate at character 1"):
        read_form(r'{"op": "remove", "path": "/\ud800"}')
    with pytest.raises(MalformedSnippetError, match=r"the name of the member \[0\]\.value\."):
        read_form(r'[{"op": "add", "path": "", "value": {"\ud800": 1}}]')
    with pytest.raises(MalformedSnippetError, match=f"the limit is {MAX_EDITS}"):
        read_form(json.dumps([{"old_string": "a", "new_string": "b"}] * (MAX_EDITS + 1)))
