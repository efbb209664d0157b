"""What the edits of forms mean, against oracles of strings, lists and JSON documents."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apply_service.edit.forms.form import (
    LineEdit,
    LineForm,
    NamedLine,
    PatchForm,
    PatchOperation,
    StringEdit,
    StringForm,
)
from apply_service.edit.forms.form_plan import plan_form
from apply_service.edit.forms.form_reader import read_form
from apply_service.edit.forms.line_edits import line_hash
from apply_service.edit.place.merge import MergePlan

LINES = st.lists(st.text("ab \t", max_size=4), min_size=1, max_size=8).map(tuple)
texts = st.text("ab\n", min_size=1, max_size=5)


def text_of(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def code_of(plan: MergePlan) -> str:
    assert not plan.merges
    (finding,) = plan.findings
    assert finding.severity == "error"
    assert finding.hint
    return finding.code


@given(LINES, texts, texts)
def test_an_old_string_is_replaced_where_it_stands_alone_and_asked_about_elsewhere(
    lines: tuple[str, ...], old: str, new: str
) -> None:
    text = text_of(lines)
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    assume(places and old != new)
    meant = {text[:at] + new + text[at + len(old) :] for at in places} - {text}
    assume(all(one.endswith("\n") or not one for one in meant))
    plan = plan_form(lines, StringForm((StringEdit(old, new),)))
    assert {text_of(merge) for merge in plan.merges} <= meant
    assert len(plan.merges) == min(len(meant), 8)
    assert plan.is_certain == (len(meant) == 1)


@given(LINES, texts, texts)
def test_replace_all_changes_every_place(lines: tuple[str, ...], old: str, new: str) -> None:
    meant = text_of(lines).replace(old, new)
    assume(old != new and meant != text_of(lines) and (meant.endswith("\n") or not meant))
    plan = plan_form(lines, StringForm((StringEdit(old, new, is_everywhere=True),)))
    assert [text_of(merge) for merge in plan.merges] == [meant]
    assert plan.certainty == 1


def test_edits_of_strings_follow_one_another() -> None:
    edits = (StringEdit("one", "two"), StringEdit("two()", "three()"))
    plan = plan_form(("one()", "four()"), StringForm(edits))
    assert plan.merges == (("three()", "four()"),)


FILE = ("def load():", "    if cached:", "        return cached", "    return read()")


def test_an_old_string_with_other_white_space_is_found_and_the_new_one_indented() -> None:
    edit = StringEdit("if cached:\n  return cached", "if cached:\n  log()\n  return cached")
    plan = plan_form(FILE, StringForm((edit,)))
    assert plan.merges == ((*FILE[:2], "        log()", *FILE[2:]),)
    assert plan.is_certain


def test_lost_indentation_that_may_mean_two_depths_is_asked_about() -> None:
    edit = StringEdit("if cached:\nreturn cached", "if cached:\nreturn cached\nlog()")
    plan = plan_form(FILE, StringForm((edit,)))
    assert not plan.is_certain
    assert {merge[3] for merge in plan.merges} == {"    log()", "        log()"}


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (StringEdit("a", "a"), "nothing_changed"),
        (StringEdit("", "x"), "anchor_not_found"),
        (StringEdit("return write()", "return 1"), "anchor_not_found"),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(edit: StringEdit, code: str) -> None:
    assert code_of(plan_form(FILE, StringForm((edit,)))) == code


def test_edits_that_undo_each_other_are_refused() -> None:
    edits = (StringEdit("cached:", "known:"), StringEdit("known:", "cached:"))
    assert code_of(plan_form(FILE, StringForm(edits))) == "nothing_changed"


def test_an_empty_old_string_fills_an_empty_file() -> None:
    plan = plan_form((), StringForm((StringEdit("", "a\nb\n"),)))
    assert plan.merges == (("a", "b"),)


@st.composite
def edits_of_lines(draw: st.DrawFn) -> tuple[tuple[str, ...], list[LineEdit], tuple[str, ...]]:
    """A file of lines that differ, edits of it in any order, and the file after them."""
    lines = tuple(f"line {number}" for number in range(draw(st.integers(1, 9))))
    edits: list[LineEdit] = []
    meant: list[str] = []
    place = 0
    while place < len(lines):
        new = tuple(draw(st.lists(st.sampled_from(["new", "newer"]), max_size=2)))
        size = draw(st.integers(1, len(lines) - place))
        first, last = (
            NamedLine(number, draw(st.sampled_from([None, line_hash(lines[number - 1])])))
            for number in (place + 1, place + size)
        )
        what = draw(st.sampled_from(["stay", "replace", "append", "prepend"]))
        if what == "replace":
            edits.append(LineEdit(op="replace", first=first, last=last, lines=new))
            meant += new
        elif what == "append":
            edits.append(LineEdit(op="append", first=last, last=None, lines=new))
            meant += [*lines[place : place + size], *new]
        elif what == "prepend":
            edits.append(LineEdit(op="prepend", first=first, last=None, lines=new))
            meant += [*new, *lines[place : place + size]]
        else:
            meant += lines[place : place + size]
        place += size
    return lines, draw(st.permutations(edits)), tuple(meant)


@given(edits_of_lines())
def test_edits_of_lines_speak_of_the_file_as_it_was_sent(
    drawn: tuple[tuple[str, ...], list[LineEdit], tuple[str, ...]],
) -> None:
    lines, edits, meant = drawn
    places = [(edit.op, edit.first) for edit in edits if edit.op != "replace"]
    assume(edits and meant != lines and len(places) < 2)
    plan = plan_form(lines, LineForm(tuple(edits)))
    assert plan.merges == (meant,)
    assert plan.certainty == 1


def replaced(
    start: int, end: int, *lines: str, old: tuple[str, ...] | None = None, known: str | None = None
) -> LineForm:
    """Lines become others; `known` is the hash of the first one."""
    first, last = NamedLine(start, known), NamedLine(end)
    return LineForm((LineEdit(op="replace", first=first, last=last, lines=lines, old=old),))


@pytest.mark.parametrize(
    ("form", "code"),
    [
        (replaced(3, 9, "x"), "line_not_found"),
        (replaced(2, 2, "x", old=("if known:",)), "stale_line"),
        (replaced(2, 2, "x", known="0000"), "stale_line"),
        (LineForm((*replaced(1, 2, "x").edits, *replaced(2, 3).edits)), "contradicting_segments"),
        (replaced(2, 2, FILE[1]), "nothing_changed"),
    ],
)
def test_edits_of_other_lines_are_refused(form: LineForm, code: str) -> None:
    assert code_of(plan_form(FILE, form)) == code


def test_a_stale_line_is_answered_with_the_fresh_ones_and_where_it_went() -> None:
    form = replaced(2, 2, "x", known=line_hash(FILE[3]))
    (finding,) = plan_form(FILE, form).findings
    assert f"2:{line_hash(FILE[1])}|{FILE[1]}" in finding.hint
    assert f"the hash is that of 4:{line_hash(FILE[3])}|{FILE[3]}" in finding.hint


@pytest.mark.parametrize("new", [("    if known:", FILE[2]), (FILE[0], "    if known:")])
def test_new_lines_that_repeat_those_beside_them_are_asked_about(new: tuple[str, ...]) -> None:
    plan = plan_form(FILE, replaced(2, 2, *new))
    assert not plan.is_certain
    assert plan.merges == (
        (FILE[0], "    if known:", *FILE[2:]),
        (FILE[0], *new, *FILE[2:]),
    )


leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab é~/", max_size=3)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner),
    max_leaves=8,
)


def pointers_of(value: Any, start: str = "") -> list[str]:
    """Pointers to all values, and to places for new ones."""
    found = [start]
    if isinstance(value, dict):
        for key, item in value.items():
            found += pointers_of(item, f"{start}/{jsonpointer.escape(key)}")
        found.append(f"{start}/new")
    if isinstance(value, list):
        for place, item in enumerate(value):
            found += pointers_of(item, f"{start}/{place}")
        found += [f"{start}/-", f"{start}/{len(value)}"]
    return found


@given(documents, st.sampled_from([None, 2, "\t"]), st.data())
def test_a_json_patch_does_what_the_library_does(
    document: Any, indent: Any, data: st.DataObject
) -> None:
    lines = tuple(json.dumps(document, indent=indent, ensure_ascii=False).split("\n"))
    pointers = pointers_of(document)
    name = data.draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]))
    sent = {"op": name, "path": data.draw(st.sampled_from(pointers))}
    if name in ("move", "copy"):
        sent["from"] = data.draw(st.sampled_from(pointers))
        assume(not f"{sent['path']}/".startswith(sent["from"] + "/"))
    if name in ("add", "replace", "test"):
        sent["value"] = data.draw(documents)
    operation = PatchOperation(
        op=name, path=sent["path"], source=sent.get("from", ""), value=sent.get("value")
    )
    plan = plan_form(lines, PatchForm((operation,)))
    try:
        meant = jsonpatch.apply_patch(copy.deepcopy(document), [sent])
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        assert code_of(plan) == "json_patch_failed"
        return
    if name == "remove" and not sent["path"]:
        assert code_of(plan) == "json_patch_failed"  # a file of JSON has a value
    elif json.dumps(meant, sort_keys=True) == json.dumps(document, sort_keys=True):
        assert not plan.merges or json.loads("\n".join(plan.merges[0])) == meant
    else:
        (merge,) = plan.merges
        found = json.loads("\n".join(merge))
        assert json.dumps(found, sort_keys=True) == json.dumps(meant, sort_keys=True)
        assert plan.certainty == 1


SETTINGS = """\
{
    "name":   "x",
    "ports": [ 80,443 ],

    "tls": { "on": true, "hosts": [] },
    "big": 12345678901234567890.10
}
"""


@pytest.mark.parametrize(
    ("operation", "old", "new"),
    [
        (PatchOperation(op="replace", path="/name", value="y"), '"x"', '"y"'),
        (PatchOperation(op="add", path="/ports/-", value=1), "443", "443, 1"),
        (PatchOperation(op="remove", path="/ports/0"), "80,443", "443"),
        (PatchOperation(op="remove", path="/big"), ',\n    "big": 12345678901234567890.10', ""),
        (PatchOperation(op="add", path="/tls/port", value=1), "[] }", '[], "port": 1 }'),
        (
            PatchOperation(op="copy", source="/ports", path="/tls/ports"),
            "[] }",
            '[], "ports": [ 80,443 ] }',
        ),
        (
            PatchOperation(op="add", path="/env", value={"a": [1]}),
            "0.10\n",
            '0.10,\n    "env": {\n        "a": [\n            1\n        ]\n    }\n',
        ),
    ],
)
def test_a_json_patch_leaves_all_else_as_it_is(
    operation: PatchOperation, old: str, new: str
) -> None:
    plan = plan_form(tuple(SETTINGS.split("\n")[:-1]), PatchForm((operation,)))
    assert [text_of(merge) for merge in plan.merges] == [SETTINGS.replace(old, new)]


@pytest.mark.parametrize("text", ["a: 1", '{"a": 1', '{"a": 1}\n{"b": 2}', "", '{"a": 1, "a": 2}'])
def test_a_file_that_is_no_json_or_has_a_key_twice_takes_no_patch(text: str) -> None:
    operation = PatchOperation(op="replace", path="/a", value=3)
    assert code_of(plan_form(tuple(text.split("\n")), PatchForm((operation,)))) == (
        "json_patch_failed"
    )


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/" + "x" * 10_000},
        {"op": "test", "path": "/b", "value": 1},
        {"op": "remove", "path": "/b/c"},
    ],
)
def test_a_finding_is_text_and_short_whatever_the_file_has(operation: dict[str, Any]) -> None:
    """JSON may write halves of pairs as escapes."""
    original = ('{"\\ud800": 1, "b": "\\udc00",', f'"{"k" * 10_000}": 1}}')
    (finding,) = plan_form(original, read_form(json.dumps(operation))).findings
    assert finding.code == "json_patch_failed"
    assert operation["path"][:20] in finding.message
    assert len((finding.message + finding.hint).encode()) < 1000


def test_what_a_pointer_does_not_name_may_have_half_pairs() -> None:
    original = ('{"\\ud800": 1, "b": "\\udc00", "~a/": 1}',)
    for path in ("/b", "/~0a~1"):
        plan = plan_form(original, read_form(json.dumps({"op": "remove", "path": path})))
        assert len(plan.merges) == 1
        assert "\\ud800" in plan.merges[0][0]
