"""What models are told about updates: one text everywhere, and each example of it merges."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from pipeline_session import make_edit, make_plan

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.outcome import Outcome
from apply_service.http.edit_tool import (
    DESCRIPTION,
    EXAMPLE_ORIGINAL,
    EXAMPLE_UPDATE,
    PROPERTIES,
    tool_in,
)

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "agent-prompt.md").read_text()
MORE_EXAMPLES = (ROOT / "tests" / "cases" / "update_rules.md").read_text()
# The copy that the Python client carries: clients and service do not import each other.
CARRIED = ROOT / "clients" / "python" / "apply_client" / "mcp_server" / "edit_tool.json"
MARKERS = re.findall(r"`([^`\n]*existing code[^`\n]*)`", DESCRIPTION)
_BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """One update of the pages: a file, what is sent, and the diff that must come of it."""

    rule: str
    language: str
    original: str
    update: str
    status: str
    diff: str | None


def read_examples() -> Iterator[Example]:
    """Examples without a file of their own have that of the introduction."""
    intro, *sections = re.split(r"^### ", DOCS, flags=re.MULTILINE)
    sections += re.split(r"^### ", MORE_EXAMPLES, flags=re.MULTILINE)[1:]
    blocks = {match["info"]: match["body"] for match in _BLOCK.finditer(intro)}
    shared = ("python", blocks["python original"])
    for section in sections:
        language, original = shared
        waiting: Example | None = None
        for match in _BLOCK.finditer(section):
            words = match["info"].split()
            if words[1:] == ["original"]:
                language, original = words[0], match["body"]
            elif words[1:2] == ["update"]:
                status = words[2] if len(words) > 2 else "applied"
                rule = section.split(".")[0]
                waiting = Example(rule, language, original, match["body"], status, None)
                if status != "applied":
                    yield waiting
            else:
                assert words == ["diff"]
                assert waiting is not None, section
                yield replace(waiting, diff=match["body"])
                language, original = shared


def merge(original: str, update: str, language: str) -> Outcome:
    """What the service makes of an update without a language model."""
    outcome = try_conclude_alone(
        make_plan(make_edit(original, update, language=language, use_model="never"))
    )
    assert outcome is not None
    return outcome


def diff_of(original: str, merged: str) -> str:
    lines = difflib.unified_diff(original.splitlines(True), merged.splitlines(True), n=2)
    return "".join(list(lines)[2:])


EXAMPLES = list(read_examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_each_example_of_the_page(example: Example) -> None:
    outcome = merge(example.original, example.update, example.language)
    assert outcome.verdict.status == example.status, outcome.verdict.findings
    if example.diff is not None:
        assert outcome.merged is not None
        assert diff_of(example.original, outcome.merged) == example.diff


def test_there_is_an_example_for_each_rule_that_has_one() -> None:
    assert {example.rule for example in EXAMPLES} == set("123456789")
    assert sum(example.status == "applied" for example in EXAMPLES) >= 10


def test_the_example_of_the_text() -> None:
    outcome = merge(f"import json\n\n\n{EXAMPLE_ORIGINAL}\n", EXAMPLE_UPDATE, "python")
    assert outcome.verdict.status == "applied"
    assert outcome.merged == (
        "import json\n\n\ndef load(path):\n"
        "    text = path.read_text()\n    return json.loads(text)\n"
    )
    assert EXAMPLE_ORIGINAL in DESCRIPTION
    assert EXAMPLE_UPDATE in DESCRIPTION


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker[:4])
def test_each_marker_of_the_text(marker: str) -> None:
    outcome = merge(
        "a = 1\nb = 2\nc = 3\nd = 4\n", f"{marker}\nb = 2\nx = 0\nc = 3\n{marker}\n", ""
    )
    assert outcome.merged == "a = 1\nb = 2\nx = 0\nc = 3\nd = 4\n"


def test_the_page_has_the_text_that_models_get() -> None:
    assert f"```text\n{DESCRIPTION}\n```\n" in DOCS
    for name in PROPERTIES:
        assert f"`{name}`" in DOCS


def test_the_client_carries_the_same_tool() -> None:
    ours = json.loads(msgspec.json.encode(tool_in("mcp")))
    assert json.loads(CARRIED.read_text()) == ours, (
        f"write the answer of GET /v1/tools/edit_file?form=mcp into {CARRIED.name}"
    )


def test_the_forms_say_the_same() -> None:
    openai, anthropic, mcp = (
        json.loads(msgspec.json.encode(tool_in(form))) for form in ("openai", "anthropic", "mcp")
    )
    schema = anthropic["input_schema"]
    assert list(schema["properties"]) == schema["required"] == list(PROPERTIES)
    assert mcp["inputSchema"] == openai["function"]["parameters"] == schema
    assert mcp["description"] == openai["function"]["description"] == anthropic["description"]
    assert openai["type"] == "function"
    assert {mcp["name"], openai["function"]["name"], anthropic["name"]} == {"edit_file"}
