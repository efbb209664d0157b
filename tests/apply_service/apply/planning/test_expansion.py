"""A small request that stands for a large text is refused before that text is written."""

from __future__ import annotations

import json
from itertools import chain

import msgspec
import pytest
from expanding_requests import expanding_requests

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import FileTooLargeError
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.forms.form import UpdateFormat
from apply_service.edit.text.text_file import TextFile

MAX_BYTES = 200_000


def plan_sizes(
    original: str, update: object, path: str, update_format: UpdateFormat | None
) -> list[int]:
    """The characters of each text that the update may mean. Raises FileTooLargeError."""
    text = update if isinstance(update, str) else json.dumps(update)
    edit = EditRequest(
        original=TextFile.from_text(original), update=text, path=path, format=update_format
    )
    merge = plan_edit(edit, max_file_bytes=MAX_BYTES).merge
    return [sum(map(len, lines)) for lines in (() if merge is None else merge.merges)]


@pytest.mark.parametrize(
    ("update", "update_format"),
    [
        ([{"old_string": "a", "new_string": "b" * 9_000, "replace_all": True}], "old_new"),
        ([{"old_string": '"', "new_string": '""', "replace_all": True}] * 40, "old_new"),
        ([{"old_string": "1", "new_string": "\n" * 2_000, "replace_all": True}], "old_new"),
        ([{"op": "copy", "from": "", "path": f"/c{n}"} for n in range(40)], "json_patch"),
        ([{"op": "add", "path": "/b", "value": [1] * 9_000}], "json_patch"),
        ([{"op": "copy", "from": "/wide", "path": "/w"}] * 9, "json_patch"),
    ],
)
def test_a_text_is_measured_before_it_is_written(
    update: object, update_format: UpdateFormat
) -> None:
    items = ",\n".join(["1"] * 300)
    original = (
        "{\n" + " " * 800 + f'"a": "{"a" * 40}",\n' + " " * 800 + f'"wide": [\n{items}\n]\n}}\n'
    )
    with pytest.raises(FileTooLargeError, match="raise max_file_bytes") as caught:
        plan_sizes(original, update, "a.json", update_format)
    assert caught.value.value > caught.value.limit


def test_no_small_request_stands_for_a_large_text() -> None:
    num_refused = 0
    for request in expanding_requests(count=120, seed=3):
        try:
            body = msgspec.json.decode(request.content)
        except msgspec.DecodeError:
            continue
        if request.target != "/v1/apply" or "files" in body or request.kind == "long numbers":
            continue
        is_form = not isinstance(body["update"], str)
        is_patch = is_form and "op" in body["update"][0]
        form: UpdateFormat = "json_patch" if is_patch else "old_new"
        if request.kind == "numbers":
            form = "line_range"
        try:
            sizes = plan_sizes(
                body["original"], body["update"], body.get("path", ""), form if is_form else None
            )
        except FileTooLargeError:
            num_refused += 1
            continue
        assert max(chain([0], sizes)) <= 9 * MAX_BYTES, request.kind
    assert num_refused >= 20
