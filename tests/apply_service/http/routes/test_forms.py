"""The forms of agents over HTTP, on edits that were written without seeing the rules."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_files import read_records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient
from oracle_service import OracleService
from page_snippets import ROOT, snippets_of

from apply_service.edit.forms.line_edits import line_hash
from apply_service.http.app import create_app

FILE = "a = 1\nb = 2\nc = 3\nb = 2\n"
CASES = read_records("agent_forms")
PAGE = ROOT / "docs" / "agent-forms.md"
FORMS = sorted({case["form"] for case in CASES})


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[TestClient[Any]]:
    service = OracleService(tiny_model_dir).service
    service.default_use_model = "never"
    with TestClient(create_app(service, max_body_bytes=1_000_000)) as client:
        yield client


def ending_of(client: TestClient[Any], case: dict[str, Any], **options: Any) -> str:
    """How an edit ended: right, silent, asked or refused."""
    body = {name: case[name] for name in ("original", "update", "path", "instruction")}
    response = client.post("/v1/apply", json={**body, **options})
    if response.status_code != 200:
        assert response.status_code in (400, 422), response.text
        return "refused"
    answer = response.json()
    if answer["status"] == "needs_review":
        assert answer["choices"]
        return "asked"
    if answer["status"] == "unchanged":
        return "refused"
    assert answer["status"] == "applied"
    is_right = case["treat"] == "apply" and answer["merged"] in case["results"]
    return "right" if is_right else f"silent: {case['id']}"


@pytest.mark.parametrize("form", FORMS)
def test_no_edit_of_a_form_goes_wrong_without_a_word(client: TestClient[Any], form: str) -> None:
    """Every text, whether the form is named or found; of those to be applied nearly all are."""
    cases = [case for case in CASES if case["form"] == form]
    for options in ({"format": form}, {}):
        endings = [(case["treat"], ending_of(client, case, **options)) for case in cases]
        silent = [ending for _, ending in endings if ending.startswith("silent")]
        assert not silent
        found = Counter(ending for treat, ending in endings if treat == "apply")
        assert found["right"] >= 0.9 * found.total()
        asked = Counter(ending for treat, ending in endings if treat == "ask")
        assert asked.keys() <= {"asked", "refused"}


def test_a_place_in_doubt_is_chosen_like_any_other(client: TestClient[Any]) -> None:
    body = {"original": FILE, "update": {"old_string": "b = 2", "new_string": "b = 9"}}
    answer = client.post("/v1/apply", json=body).json()
    assert answer["status"] == "needs_review"
    assert [choice["where"]["start_line"] for choice in answer["choices"]] == [2, 4]
    chosen = answer["choices"][1]["id"]
    answer = client.post("/v1/apply", json={**body, "resolve": chosen}).json()
    assert answer["status"] == "applied"
    assert answer["merged"] == "a = 1\nb = 2\nc = 3\nb = 9\n"
    best = client.post("/v1/apply", json={**body, "on_doubt": "best"}).json()
    assert best["status"] == "applied"


def test_an_edit_of_a_form_asks_no_model(client: TestClient[Any]) -> None:
    body = {
        "original": FILE,
        "update": {"old_string": "b = 2", "new_string": "b = 9"},
        "use_model": "always",
    }
    answer = client.post("/v1/apply", json=body).json()
    assert answer["usage"]["total_tokens"] == 0


def test_lines_are_named_and_edited_by_their_names(client: TestClient[Any]) -> None:
    content = "é = 1\r\nb\t \r\n".encode("utf-16")
    original = {"base64": base64.b64encode(content).decode()}
    named = client.post("/v1/hashlines", json={"original": original}).json()["lines"]
    assert named == [f"1:{line_hash('é = 1')}|é = 1", f"2:{line_hash('b')}|b\t "]
    update = [{"op": "replace", "pos": named[1], "lines": ["c"]}]
    answer = client.post("/v1/apply", json={"original": original, "update": update}).json()
    merged = base64.b64decode(answer["merged"]["base64"])
    assert merged == "é = 1\r\nc\r\n".encode("utf-16")


def test_edits_are_taken_in_batches(client: TestClient[Any]) -> None:
    line = {
        "id": "1",
        "original": FILE,
        "update": [{"start_line": 1, "new_string": "a = 9"}],
        "format": "line_range",
    }
    answer = client.post("/v1/batches", content=json.dumps(line)).json()
    assert answer["result"]["merged"] == FILE.replace("a = 1", "a = 9")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"update": {"find": "a"}}, "belongs to no form"),
        ({"update": []}, "has no edits"),
        ({"update": {"old_string": "a", "new_string": "b"}, "format": "diff"}, "is a text"),
        ({"update": "a = 2", "format": "old_new"}, "is no JSON"),
        ({"update": "# ...\na = 2\n# ...\n", "format": "apply_patch"}, "should be apply_patch"),
        ({"update": "c = 4\n", "format": "diff"}, "should be diff"),
        ({"update": "c = 4\n", "format": "diff", "original": ""}, "should be diff"),
    ],
)
def test_an_update_of_another_format_is_refused(
    client: TestClient[Any], changes: dict[str, Any], said: str
) -> None:
    response = client.post("/v1/apply", json={"original": FILE, **changes})
    assert response.status_code in (400, 422)
    assert said in response.json()["detail"]


plain = st.none() | st.booleans() | st.integers(-2, 9) | st.text("ab =2\n\r/~0", max_size=8)
members = st.sampled_from(
    [
        *("old_string", "new_string", "replace_all", "start_line", "end_line", "insert_line"),
        *("op", "path", "from", "value", "pos", "end", "lines", "set_line", "edits", "text"),
    ]
)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(members, inner, max_size=5),
    max_leaves=12,
)
updates = st.dictionaries(members, values, max_size=5) | st.lists(
    st.dictionaries(members, values, max_size=5), max_size=3
)


@given(
    update=updates,
    form=st.sampled_from([None, "old_new", "hashline", "line_range", "json_patch", "diff"]),
    original=st.sampled_from([FILE, "", '{"a": [1, {"b": 2}]}', "\ufeff\r\n"]),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_sent_ends_in_an_answer(
    client: TestClient[Any], update: Any, form: str | None, original: str
) -> None:
    body = {"original": original, "update": update, "format": form}
    response = client.post("/v1/apply", json=body)
    assert response.status_code in (200, 400, 422)
    if response.status_code == 200:
        answer = response.json()
        assert answer["status"] in ("applied", "needs_review")
        assert answer["merged"] != original
    else:
        assert response.json()["detail"]


def test_the_examples_of_the_page_do_what_it_says(client: TestClient[Any]) -> None:
    snippets = [one for one in snippets_of(PAGE) if one.info]
    (file,) = (one.body for one in snippets if one.info.startswith("python"))
    updates = [json.loads(one.body) for one in snippets if one.info == "json"]
    package = '{"scripts": {"test": "jest"}}\n'
    shorter = file[: file.index("    result")] + "    return sum(prices)\n"
    meant = [
        (file, file.replace("10", "30")),
        (file, "import os\n" + shorter),
        (file, shorter),
        (package, '{"scripts": {"test": "vitest run"}, "private": true}\n'),
    ]
    for update, (original, merged) in zip(updates, meant, strict=True):
        answer = client.post("/v1/apply", json={"original": original, "update": update}).json()
        assert (answer["status"], answer["confidence"]) == ("applied", 1)
        assert answer["merged"] == merged
    named = client.post("/v1/hashlines", json={"original": file}).json()["lines"][0]
    assert json.dumps(named) in PAGE.read_text()
