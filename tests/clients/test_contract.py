"""Both clients' types against the service's OpenAPI document: the same members, types and enums.

A member that is added, lost or changed on one side alone fails here.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apply_client
import httpx
import msgspec
import pytest
from apply_client.protocol.events import EventReader
from apply_client.protocol.requests import apply_request, files_request
from apply_client.protocol.wire import Base64Content, ModelList
from node_project import NodeProject
from oracle_service import OracleService
from server_thread import serving
from wire_shapes import (
    Shape,
    all_optional,
    in_order,
    required_names,
    shape_of,
    without_integers,
    without_null,
)

from apply_service.apply.events import (
    RegionDone,
    RegionRestart,
    RegionStarted,
    RegionText,
    RunEvent,
)
from apply_service.http.wire_conversion import event_of

REFERENCE = "#/components/schemas/{name}"
# The service's names, and those that both clients have for the same.
PYTHON_ANSWERS: dict[str, Any] = {
    "ApplyResult": apply_client.ApplyResult[str | Base64Content | None],
    "FilesResult": apply_client.FilesResult[str | Base64Content | None],
    "Problem": apply_client.Problem,
    "ModelList": ModelList,
    "RegionEvent": apply_client.RegionStarted,
    "TokenEvent": apply_client.Token,
    "RegionEndEvent": apply_client.RegionDone,
}
TYPESCRIPT_NAMES = {
    "ApplyBody": "ApplyBody",
    "ApplyResult": "WireResult",
    "FilesBody": "FilesBody",
    "FilesResult": "WireFilesResult",
    "Problem": "Problem",
    "ModelList": "ModelList",
    "RegionEvent": "RegionEvent",
    "TokenEvent": "TokenEvent",
    "RegionEndEvent": "RegionEndEvent",
}
RUN_EVENTS: tuple[RunEvent, ...] = (
    RegionStarted(3, 0, 7),
    RegionText(3, "é\n"),
    RegionDone(3),
    RegionRestart(3),
)
# The Python client asks for text and diff, never for edits, so their forms are nothing to it.
FORMS_OF_EDITS = {"edits_format", "position_encoding"}
FULL_OPTIONS = apply_client.ApplyOptions(
    language="python",
    scope="file",
    checks="on",
    constraint="merge",
    use_model="never",
    on_doubt="ask",
    prediction="a\n",
    sampling=apply_client.Sampling(
        temperature=0.5, top_p=0.9, top_k=3, seed=1, max_tokens=9, acceptance="exact"
    ),
    speculation="off",
    k=4,
    priority="batch",
    model="oracle",
    include=("decisions", "trace"),
    deadline_s=9.0,
)
# It may mean either of two lines.
FULL_EDIT = apply_client.Edit(
    "a = 1\nb = 1\na = 1\nc = 1\n",
    "# ...\na = 1\nprint(a)\n# ...\n",
    format="lazy",
    path="a.py",
    instruction="Print it.",
    options=FULL_OPTIONS,
)


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    with serving(OracleService(tiny_model_dir).service) as address:
        yield address


@pytest.fixture(scope="module")
def schemas(url: str) -> dict[str, Any]:
    """The named types of `/schema`."""
    document = httpx.get(f"{url}/schema", trust_env=False).raise_for_status().json()
    found: dict[str, Any] = document["components"]["schemas"]
    return found


@pytest.fixture(scope="module")
def typescript_types(node_project: NodeProject) -> dict[str, Shape]:
    """The types of the TypeScript client as its declarations have them."""
    described: dict[str, Shape] = json.loads(node_project.run("test/describe_types.mjs"))
    return {name: in_order(shape) for name, shape in described.items()}


def server_shape(name: str, schemas: dict[str, Any]) -> Shape:
    return shape_of(schemas[name], schemas)


def python_shape(kind: Any) -> Shape:
    (schema,), parts = msgspec.json.schema_components([kind], ref_template=REFERENCE)
    return shape_of(schema, parts)


@pytest.mark.parametrize("name", sorted(PYTHON_ANSWERS))
def test_the_python_client_knows_what_is_answered(name: str, schemas: dict[str, Any]) -> None:
    server, client = server_shape(name, schemas), python_shape(PYTHON_ANSWERS[name])
    assert all_optional(client) == all_optional(server)
    assert required_names(client) <= required_names(server)


def test_the_python_client_can_ask_for_everything(schemas: dict[str, Any], url: str) -> None:
    body = server_shape("ApplyBody", schemas)["object"]
    with apply_client.ApplyClient(url) as client:
        choice = client.apply_edit(FULL_EDIT).choices[0]
    request = apply_request(replace(FULL_EDIT, resolve=choice.id))
    sent = json.loads(request.content)
    assert set(sent) == {name.rstrip("?") for name in body} - FORMS_OF_EDITS
    assert set(sent["sampling"]) == {name.rstrip("?") for name in body["sampling?"]["object"]}
    answer = httpx.post(
        f"{url}{request.path}", content=request.content, headers=request.headers, trust_env=False
    )
    assert answer.status_code == 200, answer.text


def test_the_python_client_can_ask_for_everything_of_several_files(
    schemas: dict[str, Any], url: str
) -> None:
    body, file = (server_shape(name, schemas)["object"] for name in ("FilesBody", "FileBody"))
    full = apply_client.FileEdit(
        "a.py",
        b"a = 1\n",
        "a = 2\n",
        format="lazy",
        instruction="Change it.",
        language="python",
        prediction="a = 2\n",
        resolve="0" * 16,
    )
    edit = apply_client.FilesEdit(
        [full],
        update="*** Begin Patch",
        format="apply_patch",
        is_atomic=True,
        instruction="Change it.",
        options=replace_options(FULL_OPTIONS),
    )
    sent = json.loads(files_request(edit).content)
    assert set(sent) == {name.rstrip("?") for name in body} - FORMS_OF_EDITS - {"stream"}
    assert set(sent["files"][0]) == {name.rstrip("?") for name in file}
    asked = apply_client.FilesEdit(
        [
            apply_client.FileEdit("a.py", b"a = 1\n", [{"old_string": "1", "new_string": "2"}]),
            apply_client.FileEdit("b.py", FULL_EDIT.original, FULL_EDIT.update),
        ],
        is_atomic=True,
        options=apply_client.ApplyOptions(use_model="never"),
    )
    with apply_client.ApplyClient(url) as client:
        question = client.apply_files(asked)
        assert (question.status, question.in_doubt) == ("needs_review", ("b.py",))
        problem = question.files[1].problem
        assert problem is not None
        assert problem.choices is not None
        answer = client.apply_files(asked.resolved({"b.py": problem.choices[0].id}))
    assert answer.is_sure
    assert answer.files[0].result is not None
    assert answer.files[0].result.merged == b"a = 2\n"


def replace_options(options: apply_client.ApplyOptions) -> apply_client.ApplyOptions:
    """Options of several files: those of a single one are members of it."""
    return msgspec.structs.replace(options, language=None, prediction=None)


def test_the_python_clients_options_have_the_services_types(schemas: dict[str, Any]) -> None:
    body = server_shape("ApplyBody", schemas)["object"]
    options = python_shape(apply_client.ApplyOptions)["object"]
    for name, shape in options.items():
        assert without_null(shape) == without_null(body[name]), name


def test_the_python_client_reads_every_event() -> None:
    assert {type(event) for event in RUN_EVENTS} == set(typing.get_args(RunEvent))
    read = []
    for event in RUN_EVENTS:
        name, payload = event_of(event)
        sent = b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(payload))
        (item,) = EventReader(str).feed(sent)
        assert msgspec.to_builtins(item) == msgspec.to_builtins(payload)
        read.append(type(item))
    assert set(read) == set(typing.get_args(apply_client.StreamEvent))


@pytest.mark.parametrize("name", sorted(TYPESCRIPT_NAMES))
def test_the_typescript_client_has_the_services_types(
    name: str, schemas: dict[str, Any], typescript_types: dict[str, Shape]
) -> None:
    described = typescript_types[TYPESCRIPT_NAMES[name]]
    assert described == without_integers(server_shape(name, schemas))


def test_the_typescript_client_knows_every_event(
    schemas: dict[str, Any], typescript_types: dict[str, Shape]
) -> None:
    payloads = dict(event_of(event) for event in RUN_EVENTS)
    expected = {name: type(payload).__name__ for name, payload in payloads.items()}
    expected |= {"result": "ApplyResult", "error": "Problem"}
    shapes = {name: server_shape(kind, schemas) for name, kind in expected.items()}
    assert typescript_types["WireEvents"] == without_integers({"object": shapes})


def test_what_the_typescript_client_may_be_asked_is_checked_by_its_compiler(
    node_project: NodeProject,
) -> None:
    node_project.run("node_modules/typescript/bin/tsc", "--project", "test")


@pytest.mark.parametrize(
    "change",
    [
        {"required": ["status"]},
        {"properties": {"status": {"type": "string"}, "added": {"type": "string"}}},
        {"properties": {"status": {"type": "integer"}, "line": {"type": "integer"}}},
        {"properties": {"status": {"enum": ["on", "off", "auto"]}, "line": {"type": "integer"}}},
        {"properties": {"status": {"enum": ["on", "off"]}, "line": {"type": ["integer", "null"]}}},
    ],
)
def test_a_change_on_one_side_changes_a_shape(change: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {"status": {"enum": ["on", "off"]}, "line": {"type": "integer"}},
        "required": [],
    }
    assert shape_of(schema | change, {}) != shape_of(schema, {})
    assert shape_of(schema, {}) == {
        "object": {"status?": {"any": [{"const": "off"}, {"const": "on"}]}, "line?": "integer"}
    }
