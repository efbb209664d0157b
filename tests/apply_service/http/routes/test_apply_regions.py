"""`POST /v1/apply` in region scope: what the answer and the stream say of regions and edits."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient
from oracle_service import OracleService
from oracles.edits.lsp_document import apply_text_edits
from pipeline_session import (
    MAX_FILE_BYTES,
    functions,
    make_edit,
    make_plan,
    teach,
    tries_of,
)

from apply_service.apply import conclusion
from apply_service.edit.text.text_edits import Position, TextEdit
from apply_service.http.app import create_app
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyResult, RegionEndEvent, RegionEvent, TokenEvent

NAMES = [f"part_{number:02d}" for number in range(43)]
LARGE = functions(NAMES)
UPDATE = "# ...\n" + "".join(
    f"def {name}(value):\n    total_{name} = value + {number}\n    print(value)\n"
    f"    for step in range({number}):\n# ...\n"
    for name, number in (("part_03", 3), ("part_38", 38))
)
BODY = {"original": LARGE, "update": UPDATE, "language": "python", "constraint": "none"}
PAYLOADS = {
    "region": RegionEvent,
    "token": TokenEvent,
    "region_done": RegionEndEvent,
    "region_restart": RegionEndEvent,
    "result": ApplyResult,
    "error": Problem,
}


@pytest.fixture(scope="module")
def oracle(tiny_model_dir: Path) -> OracleService:
    """With so much time that no stall of a busy machine makes it refuse an edit."""
    return OracleService(
        tiny_model_dir,
        max_position=60_000,
        num_blocks=4096,
        max_file_bytes=MAX_FILE_BYTES,
        deadline_s=600.0,
    )


@pytest.fixture(scope="module")
def client(oracle: OracleService) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(oracle.service, max_body_bytes=1_000_000)) as client:
        deadline = time.monotonic() + 10
        while client.get("/health/ready").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield client


@pytest.fixture(autouse=True)
def _is_taught(oracle: OracleService) -> Iterator[None]:
    """The narrow try is answered well; nothing is left running afterwards."""
    plan = make_plan(make_edit(LARGE, UPDATE))
    oracle.runner.answer_by_region.clear()
    oracle.will_answer(["this is no merge"])
    teach(oracle, plan, tries_of(plan, oracle)[0])
    yield
    deadline = time.monotonic() + 10
    engine = oracle.service.served.engine
    while (stats := engine.stats()).num_free_blocks != stats.num_blocks or stats.num_running:
        assert time.monotonic() < deadline, stats
        time.sleep(0.01)


def events_of(text: str) -> list[tuple[str, Any]]:
    """The events of a stream, each decoded strictly by the schema of its name."""
    events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        head, payload = block.split("\n")
        name = head.removeprefix("event: ")
        events.append(
            (name, msgspec.json.decode(payload.removeprefix("data: "), type=PAYLOADS[name]))
        )
    return events


def test_the_answer_names_its_regions_and_removed_lines(client: TestClient[Any]) -> None:
    result = client.post("/v1/apply", json=BODY).json()
    assert (result["status"], result["scope"], result["source"]) == ("applied", "region", "model")
    assert len(result["regions"]) == 2
    assert result["removed_lines"] == []
    lines = result["merged"].split("\n")
    assert [place + 1 for place, line in enumerate(lines) if line == "    print(value)"] == [
        24,
        270,
    ]
    for region, number in zip(result["regions"], (24, 269), strict=True):
        assert region["start_line"] < number <= region["end_line"]
    replaced = {**BODY, "update": "# ...\ndef part_03(value):\n    return value\n# ...\n# ...\n"}
    result = client.post("/v1/apply", json={**replaced, "scope": "file"}).json()
    texts = LARGE.split("\n")
    for removed in result["removed_lines"]:
        assert texts[removed["line"] - 1] == removed["text"]


def test_a_stream_tells_of_both_regions_in_its_schema(client: TestClient[Any]) -> None:
    events = events_of(client.post("/v1/apply", json={**BODY, "stream": True, "k": 2}).text)
    names = [name for name, _ in events]
    assert set(names) == {"region", "token", "region_done", "result"}
    assert names[:2] == ["region", "region"]
    assert names.count("result") == 1
    assert names[-1] == "result"
    assert {event.region for name, event in events if name == "token"} == {0, 1}
    result = events[-1][1]
    merged = result.merged.split("\n")
    text = "".join(e.text for name, e in events if name == "token" and e.region == 0)
    region = result.regions[0]
    assert text.split("\n") == merged[region.start_line - 1 : region.end_line + 1]


def test_a_wrong_answer_restarts_its_region(client: TestClient[Any], oracle: OracleService) -> None:
    oracle.runner.answer_by_region.clear()
    original = LARGE.replace("range(20)", "range(22)").replace("total_part_20", "total_part_22")
    body = {
        **BODY,
        "original": original,
        "update": "# ...\n    for step in range(22):\n        print(step)\n# ...\n",
        "stream": True,
    }
    events = events_of(client.post("/v1/apply", json=body).text)
    restarts = [event.region for name, event in events if name == "region_restart"]
    begun = [event.region for name, event in events if name == "region"]
    assert restarts
    assert restarts == begun[: len(restarts)]
    assert [name for name, _ in events if name in ("result", "error")] == [events[-1][0]]
    assert events[-1][1].status == "needs_review"


def test_an_idle_server_tries_whatever_it_believes_of_itself(
    client: TestClient[Any], oracle: OracleService
) -> None:
    oracle.runner.step_s = 0.3
    assert client.post("/v1/apply", json=BODY).status_code == 200
    oracle.runner.step_s = 0.0
    answers = [client.post("/v1/apply", json={**BODY, "deadline_s": 0.25}) for _ in range(3)]
    assert {answer.status_code for answer in answers} <= {200, 504}, answers[0].text


def test_an_edit_that_comes_again_has_no_more_cached_tokens_than_its_prompt(
    client: TestClient[Any],
) -> None:
    """What is known of the answer beforehand may be found in the cache, and is no prompt."""
    body = {**BODY, "constraint": "merge", "scope": "file"}
    usages = [client.post("/v1/apply", json=body).json()["usage"] for _ in range(3)]
    assert usages[1] == usages[2]
    assert 0 < usages[1]["cached_tokens"] <= usages[1]["prompt_tokens"]


def test_a_deadline_over_the_servers_maximum_is_cut_and_the_answer_says_so(
    client: TestClient[Any], oracle: OracleService
) -> None:
    asked = [10.0, 600.0, 601.0, None]
    answers = [client.post("/v1/apply", json={**BODY, "deadline_s": one}).json() for one in asked]
    assert [answer["deadline_s"] for answer in answers] == [None, None, 600.0, None]


ODD_TEXT = st.text(alphabet=st.sampled_from("ab \t\u2603\U0001f600\x0c\u2028"), max_size=6)


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, str]:
    """A file and what it becomes: some lines replaced, some left out, some new."""
    old = [f"{number} {draw(ODD_TEXT)}" for number in range(draw(st.integers(1, 12)))]
    new: list[str] = []
    for line in old:
        new += draw(st.sampled_from(([line], [line], [line], [], [f"new {line}"], ["more", line])))
    end = draw(st.sampled_from(("\n", "\r\n")))
    last = end if draw(st.booleans()) else ""
    return end.join(old) + last, end.join(new or ["x"]) + last


@given(change=changes())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_edits_are_the_change_and_equal_the_diff(
    client: TestClient[Any], oracle: OracleService, change: tuple[str, str]
) -> None:
    original, expected = change
    end = "\r\n" if "\r\n" in original else "\n"
    oracle.runner.answer_by_region.clear()
    oracle.will_answer(expected.removesuffix(end).split(end))
    last = original.removesuffix(end).split(end)[-1]
    body = {
        "original": original,
        "update": f"// ... existing code ...\n{last}\nadded();\n",
        "checks": "off",
        "scope": "file",
        "constraint": "none",
        "path": "a.txt",
    }
    both = client.post("/v1/apply", json=body).json()
    edits = client.post("/v1/apply", json={**body, "response": "edits"}).json()
    assert edits["merged"] is edits["diff"] is None
    assert both["edits"] is None
    assert both["merged"] == expected
    parsed = [
        TextEdit(Position(**one["start"]), Position(**one["end"]), one["text"])
        for one in edits["edits"]
    ]
    assert apply_text_edits(original, parsed) == expected
    assert removed_by_diff(both["diff"]) == sum(
        one.end.line - one.start.line + (one.end.character > 0) - (one.start.character > 0)
        for one in parsed
    )


EDIT_OF_EMOJI = {
    "original": "a = 1\r\n# 😀 é\r\nc = '😀'",
    "update": "a = 1\n# 😀 é\nc = '😀😀'",
    "use_model": "never",
    "response": "edits",
}


@pytest.mark.parametrize(
    ("encoding", "character", "start", "end"),
    [("utf-8", 10, 18, 28), ("utf-16", 8, 15, 23), ("utf-32", 7, 14, 21)],
)
def test_edits_come_in_the_form_and_encoding_that_is_asked_for(
    client: TestClient[Any], encoding: str, character: int, start: int, end: int
) -> None:
    body = {**EDIT_OF_EMOJI, "position_encoding": encoding}
    first, last = {"line": 2, "character": 0}, {"line": 2, "character": character}
    text = "c = '😀😀'"
    forms = {
        "lsp": {"range": {"start": first, "end": last}, "newText": text},
        "offsets": {"start": start, "end": end, "newText": text},
        None: {"start": first, "end": last, "text": text},
    }
    for form, expected in forms.items():
        answer = client.post("/v1/apply", json={**body, "edits_format": form})
        assert answer.json()["edits"] == [expected]
        # RFC 9745: only the positions of earlier releases are deprecated.
        assert ("deprecation" in answer.headers) is (form is None)
    assert "deprecation" not in client.post("/v1/apply", json={**body, "response": "both"}).headers


def removed_by_diff(diff: str) -> int:
    """Lines of the old file that a unified diff takes away."""
    return len(re.findall(r"^-(?!-- a/)", diff, re.MULTILINE))


def test_what_every_try_gets_wrong_is_an_error_and_422(
    client: TestClient[Any], oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle.runner.answer_by_region.clear()
    oracle.will_answer(["again()"], is_ended=False)
    monkeypatch.setattr(conclusion, "try_merge", lambda _: None)
    twice = LARGE.replace("for step in range(20)", "for step in range(22)")
    update = "# ...\n    for step in range(22):\n        print(step)\n# ...\n"
    body = {"original": twice, "update": update, "language": "python", "use_model": "always"}
    response = client.post("/v1/apply", json=body)
    assert (response.status_code, response.json()["code"]) == (422, "rejected")
    assert "truncated" in {finding["code"] for finding in response.json()["findings"]}
    events = events_of(client.post("/v1/apply", json={**body, "stream": True}).text)
    names = [name for name, _ in events]
    assert names[-1] == "error"
    assert names.count("region_restart") == names.count("region") - 1 > 0
