"""Hooks for schemathesis: bodies of lines, and the duty to accept bodies that fit the document."""

from __future__ import annotations

import json
from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode

NDJSON = "application/x-ndjson"
# A body that these refuse does not fit the document; other refusals are of what it means.
_FORM_CODES = {"invalid-json", "invalid-field", "unknown-field", "bad-request"}


@schemathesis.serializer(NDJSON)
def lines_of(_context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@schemathesis.deserializer(NDJSON)
def last_answer(_context: Any, response: Any) -> Any:
    """Take one line for all: the document describes one."""
    lines = response.content.splitlines()
    return json.loads(lines[-1]) if lines else {"id": None, "line": 1}


@schemathesis.deserializer("text/event-stream")
def events(_context: Any, response: Any) -> str:
    return str(response.text)


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Give each edit time enough: with too little it ends in 504, as it should."""
    time = body.get("deadline_s") if isinstance(body, dict) else None
    if type(time) in (int, float) and 0 < time < 30:
        body["deadline_s"] = 30
    return body


@schemathesis.check
def fitting_bodies_are_read(_context: Any, response: Any, case: Any) -> None:
    """Check that the native routes accept the form of a body that fits the document."""
    is_fitting = case.meta and case.meta.generation.mode == GenerationMode.POSITIVE
    if not is_fitting or response.status_code != 400:
        return
    problem = response.json()
    if isinstance(problem, dict) and "code" in problem and "type" in problem:
        # To JSON Schema 7.0 is an integer.
        is_whole_float = "Expected `int" in problem["detail"] and "got `float`" in problem["detail"]
        assert problem["code"] not in _FORM_CODES or is_whole_float, problem
