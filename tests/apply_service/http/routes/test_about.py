"""`GET /v1/tools/edit_file` over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving

from apply_service.http.edit_tool import DESCRIPTION


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    with serving(OracleService(tiny_model_dir).service) as address:
        yield f"{address}/v1/tools/edit_file"


def test_each_form(url: str) -> None:
    openai = httpx.get(url).raise_for_status().json()
    assert openai == httpx.get(url, params={"form": "openai"}).json()
    assert openai["function"]["description"] == DESCRIPTION
    for form, schema in (("anthropic", "input_schema"), ("mcp", "inputSchema")):
        tool = httpx.get(url, params={"form": form}).raise_for_status().json()
        assert tool == {
            "name": "edit_file",
            "description": DESCRIPTION,
            schema: openai["function"]["parameters"],
        }


def test_an_unknown_form_is_refused(url: str) -> None:
    answer = httpx.get(url, params={"form": "gemini"})
    assert answer.status_code == 400
    assert "form: Invalid enum value 'gemini'" in answer.json()["detail"]
    assert "GET /schema" in answer.json()["remedy"]


def test_the_schema_knows_the_parameter(url: str) -> None:
    document = httpx.get(url.replace("/v1/tools/edit_file", "/schema/openapi.json")).json()
    operation = document["paths"]["/v1/tools/edit_file"]["get"]
    (form,) = operation["parameters"]
    assert (form["name"], form["in"], form["required"]) == ("form", "query", False)
