"""`docs/openapi.json` is what clients were promised; the document of today has all of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openapi_growth import losses

from apply_service.cli.main import main
from apply_service.http.app import service_document

SNAPSHOT = Path(__file__).parents[3] / "docs" / "openapi.json"
REMEDY = "a client would break; if that is meant, write docs/openapi.json anew"

Change = Callable[[dict[str, Any], dict[str, Any]], Any]


@pytest.fixture(scope="module")
def snapshot() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return document


def test_nothing_is_lost(snapshot: dict[str, Any]) -> None:
    assert losses(snapshot, service_document()) == [], REMEDY


def test_the_snapshot_has_every_address(snapshot: dict[str, Any]) -> None:
    missing = service_document()["paths"].keys() - snapshot["paths"].keys()
    assert not missing, "`apply-service config --openapi > docs/openapi.json` adds them"


def test_the_command_writes_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--openapi"]) == 0
    assert json.loads(capsys.readouterr().out) == service_document()


def test_every_operation_stands_in_one_group_that_is_described(snapshot: dict[str, Any]) -> None:
    groups = {tag["name"] for tag in snapshot["tags"] if tag["description"]}
    operations = [one for path in snapshot["paths"].values() for one in path.values()]
    assert len(operations) > 15
    assert {name for one in operations for name in one["tags"]} == groups
    assert all(len(one["tags"]) == 1 for one in operations)


def test_every_reference_leads_somewhere(snapshot: dict[str, Any]) -> None:
    schemas = snapshot["components"]["schemas"]
    references = [part.split('"')[0] for part in json.dumps(snapshot).split("schemas/")[1:]]
    assert len(references) > 50
    assert set(references) <= schemas.keys()


def member_of(name: str, member: str) -> Change:
    return lambda schemas, _: schemas[name]["properties"].pop(member)


@pytest.mark.parametrize(
    ("change", "loss"),
    [
        (lambda _, paths: paths.pop("/v1/apply"), "POST /v1/apply is gone"),
        (lambda _, paths: paths["/v1/models"].pop("get"), "GET /v1/models is gone"),
        (member_of("ApplyBody", "k"), "body.k is gone"),
        (member_of("ApplyResult", "merged"), "200.merged is gone"),
        (member_of("FindingBody", "hint"), "200.findings[].hint is gone"),
        (
            lambda schemas, _: schemas["ApplyBody"]["required"].append("path"),
            "body.path is required now",
        ),
        (
            lambda schemas, _: schemas["ApplyResult"]["required"].remove("status"),
            "200.status may be missing now",
        ),
        (
            lambda schemas, _: schemas["ApplyBody"]["properties"]["scope"]["enum"].remove("file"),
            "body.scope: of the values ['file'] are gone",
        ),
        (
            lambda schemas, _: schemas["SamplingBody"]["properties"]["top_k"].update(maximum=5),
            "body.sampling.top_k: maximum is 5 now",
        ),
        (
            lambda schemas, _: schemas["ApplyBody"]["properties"]["path"].update(
                anyOf=[{"type": "string"}]
            ),
            "body.path: null became string",
        ),
        (
            lambda _, paths: paths["/v1/apply"]["post"]["responses"]["200"]["content"].pop(
                "text/event-stream"
            ),
            "200: text/event-stream is gone",
        ),
    ],
)
def test_a_loss_is_seen(snapshot: dict[str, Any], change: Change, loss: str) -> None:
    newer = copy.deepcopy(snapshot)
    change(newer["components"]["schemas"], newer["paths"])
    assert [line for line in losses(snapshot, newer) if line.endswith(loss)]


@pytest.mark.parametrize(
    "change",
    [
        lambda schemas, paths: paths.update({"/v1/new": paths["/v1/apply"]}),
        lambda schemas, _: schemas["ApplyBody"]["properties"].update(new={"type": "string"}),
        lambda schemas, _: schemas["ApplyResult"]["required"].append("model"),
        lambda schemas, _: schemas["ApplyBody"]["required"].remove("update"),
        lambda schemas, _: schemas["ApplyBody"]["properties"]["scope"]["enum"].append("hunk"),
        lambda schemas, _: schemas["SamplingBody"]["properties"]["temperature"].update(maximum=3),
        lambda schemas, _: schemas["ChatMessageBody"]["properties"]["role"].update(
            anyOf=[{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        ),
    ],
)
def test_growth_is_no_loss(snapshot: dict[str, Any], change: Change) -> None:
    newer = copy.deepcopy(snapshot)
    change(newer["components"]["schemas"], newer["paths"])
    assert losses(snapshot, newer) == []
