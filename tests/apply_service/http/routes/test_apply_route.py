"""`POST /v1/apply` over the real engine with an oracle as its model."""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from litestar.testing import TestClient
from oracle_service import MODEL_NAME, OracleService

from apply_service.http.app import create_app
from apply_service.http.compat.settings import DEFAULT_ALIASES
from apply_service.version import system_fingerprint

FINGERPRINT = system_fingerprint("oracle-fingerprint", None)
ORIGINAL = "import os\n\n\ndef name(path):\n    return os.path.basename(path)\n"
UPDATE = "# ... existing code ...\ndef name(path):\n    return os.path.basename(path).lower()\n"
MERGED = ORIGINAL.replace("(path)\n", "(path).lower()\n").replace(
    "name(path).lower():", "name(path):"
)
EDIT = {"original": ORIGINAL, "update": UPDATE}
# Both ends of the update stand once in the file, so nothing is left to the model.
CERTAIN = {
    "original": "def shout(path):\n    base = clean(path)\n    return base.upper()\n",
    "update": "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n",
}
# This may belong behind either of two equal lines.
UNSURE = {
    "original": "a = 1\nb = 1\n\na = 1\nc = 1\n",
    "update": "# ...\na = 1\nprint(a, end=None)\n# ...\n",
}
MISPLACED = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(MERGED.split("\n")[:-1])
    return oracle


@pytest.fixture
def client(oracle: OracleService) -> Iterator[TestClient[Any]]:
    app = create_app(oracle.service, max_body_bytes=100_000)
    with TestClient(app) as client:
        deadline = time.monotonic() + 10
        while client.get("/health/ready").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield client


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    found = response.json()
    assert found["status"] == status
    assert found["type"] == f"urn:apply-service:problem:{found['code']}"
    assert found["title"]
    assert found["detail"]
    return dict(found)


@pytest.mark.parametrize("path", ["/v1/apply", "/apply"])
def test_a_merge_comes_back_with_its_figures(client: TestClient[Any], path: str) -> None:
    response = client.post(path, json={**EDIT, "path": "a.py"})
    assert response.status_code == 200, response.text
    result = response.json()
    assert result["status"] == "applied"
    assert result["merged"] == MERGED
    assert result["diff"].startswith("--- a/a.py\n+++ b/a.py\n@@")
    assert result["findings"] == []
    assert result["source"] == "model"
    assert 0.5 < result["confidence"] <= 1
    assert result["model"] == MODEL_NAME
    assert result["system_fingerprint"] == FINGERPRINT
    usage, speculation = result["usage"], result["speculation"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < speculation["accepted"] <= speculation["drafted"]
    assert speculation["accepted"] == sum(
        figures["accepted"] for figures in speculation["by_reference"].values()
    )
    assert speculation["tokens_per_target_pass"] > 1
    assert result["timing"]["total"] > 0


@pytest.mark.parametrize(
    ("form", "keys"), [("file", {"merged"}), ("diff", {"diff"}), ("both", {"merged", "diff"})]
)
def test_forms_of_the_response(client: TestClient[Any], form: str, keys: set[str]) -> None:
    result = client.post("/v1/apply", json={**EDIT, "response": form}).json()
    assert {key for key in ("merged", "diff") if result[key] is not None} == keys


def test_base64_is_answered_in_kind(client: TestClient[Any]) -> None:
    content = b"\xff\xfe" + ORIGINAL.replace("\n", "\r\n").encode("utf-16-le")
    body = {**EDIT, "original": {"base64": base64.b64encode(content).decode()}}
    result = client.post("/v1/apply", json=body).json()
    merged = base64.b64decode(result["merged"]["base64"])
    assert merged == b"\xff\xfe" + MERGED.replace("\n", "\r\n").encode("utf-16-le")


def test_speculation_off_and_k(client: TestClient[Any]) -> None:
    off = client.post("/v1/apply", json={**EDIT, "speculation": "off"}).json()
    small = client.post("/v1/apply", json={**EDIT, "k": 4}).json()
    large = client.post("/v1/apply", json=EDIT).json()
    assert off["merged"] == small["merged"] == large["merged"] == MERGED
    assert off["speculation"]["drafted"] == 0
    passes = [result["speculation"]["decode_passes"] for result in (off, small, large)]
    assert passes[0] == off["usage"]["completion_tokens"]
    assert passes == sorted(passes, reverse=True)
    assert len(set(passes)) == 3


def events_of(text: str) -> list[tuple[str, Any]]:
    events = []
    for block in text.strip().split("\n\n"):
        name, payload = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(payload.removeprefix("data: "))))
    return events


def test_a_stream_has_pieces_and_exactly_one_result(client: TestClient[Any]) -> None:
    response = client.post("/v1/apply", json={**EDIT, "stream": True, "k": 4})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    names = [name for name, _ in events]
    assert names == ["region", *["token"] * (len(names) - 3), "region_done", "result"]
    assert len(names) > 5
    assert events[0][1] == {"region": 0, "start_line": 1, "end_line": 5}
    assert "".join(event["text"] for _, event in events[1:-2]) == MERGED.removesuffix("\n")
    assert events[-1][1]["merged"] == MERGED


def test_a_rejected_result_is_not_returned(client: TestClient[Any], oracle: OracleService) -> None:
    oracle.runner.gate.clear()
    body = {**EDIT, "update": MISPLACED}
    found = problem(client.post("/v1/apply", json=body), 422)
    assert found["code"] == "rejected"
    hints = {finding["code"]: finding["hint"] for finding in found["findings"]}
    assert "the original defines name" in hints["anchor_not_found"]
    assert "merged" not in found
    events = events_of(client.post("/v1/apply", json={**body, "stream": True}).text)
    assert [name for name, _ in events] == ["error"]
    assert events[-1][1]["code"] == "rejected"


def test_a_wrong_answer_gives_way_to_the_certain_merge(
    client: TestClient[Any], oracle: OracleService
) -> None:
    oracle.will_answer(["import os", "# ... existing code ..."])
    old, new = "    return os.path.basename(path)", "    return os.path.basename(path).lower()"
    block = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
    result = client.post("/v1/apply", json={**EDIT, "update": block}).json()
    assert (result["status"], result["source"]) == ("applied", "merge")
    assert result["merged"] == MERGED
    assert result["usage"]["completion_tokens"] > 0


def test_checks_off_returns_it(client: TestClient[Any], oracle: OracleService) -> None:
    oracle.will_answer(["import os", "# ... existing code ..."])
    result = client.post("/v1/apply", json={**EDIT, "checks": "off"}).json()
    assert result["merged"] == "import os\n# ... existing code ...\n"
    assert result["status"] == "rejected"
    oracle.will_answer(MERGED.split("\n")[:-1], is_ended=False)
    result = client.post("/v1/apply", json={**EDIT, "checks": "off"}).json()
    assert result["merged"] == MERGED
    assert [finding["code"] for finding in result["findings"]] == ["truncated"]


def test_an_answer_that_is_cut_off_is_rejected(client: TestClient[Any]) -> None:
    body = {**EDIT, "sampling": {"max_tokens": 5}, "checks": "off"}
    result = client.post("/v1/apply", json=body).json()
    assert result["status"] == "rejected"
    assert [finding["code"] for finding in result["findings"]] == ["truncated"]
    assert client.post("/v1/apply", json={**body, "checks": "on"}).json()["source"] == "merge"


def test_needs_review_is_returned_with_its_findings(
    client: TestClient[Any], oracle: OracleService
) -> None:
    oracle.will_answer(["a = 1", "b = 1"])
    result = client.post("/v1/apply", json=UNSURE).json()
    assert (result["status"], result["source"]) == ("needs_review", "merge")
    assert [finding["code"] for finding in result["findings"]] == ["ambiguous_place"]
    oracle.will_answer(["a = 1", "b = 1", "", "a = 1", "print(a, end=None)", "c = 1"])
    result = client.post("/v1/apply", json=UNSURE).json()
    assert (result["status"], result["source"]) == ("needs_review", "model")
    assert result["merged"] == "a = 1\nb = 1\n\na = 1\nprint(a, end=None)\nc = 1\n"


def test_a_trace_comes_on_request(client: TestClient[Any], oracle: OracleService) -> None:
    body = {**EDIT, "use_model": "always", "constraint": "none"}
    assert client.post("/v1/apply", json=body).json()["trace"] is None
    result = client.post("/v1/apply", json={**body, "include": ["trace"]}).json()
    (part,) = result["trace"]
    assert part["region"] == 0
    tokens = [token for step in part["steps"] for token in step["tokens"]]
    text = "".join(token["text"] for token in tokens)
    assert "return os.path.basename(path).lower()\n" in text
    speculation, usage = result["speculation"], result["usage"]
    assert len(tokens) == usage["completion_tokens"]
    counts = Counter(token["origin"] for token in tokens)
    assert (counts["drafted"], counts["forced"]) == (
        speculation["accepted"],
        speculation["forced"],
    )
    assert counts["drafted"] > 0
    assert all(step["drafter"] for step in part["steps"] if step["rejected"])
    streamed = client.post("/v1/apply", json={**body, "include": ["trace"], "stream": True})
    (again,) = events_of(streamed.text)[-1][1]["trace"]
    assert [step["tokens"] for step in again["steps"]] == [step["tokens"] for step in part["steps"]]
    alone = {**CERTAIN, "use_model": "never", "include": ["trace"]}
    merged = client.post("/v1/apply", json=alone).json()
    assert merged["trace"] == [], "nobody was asked"


def test_decisions_come_on_request(client: TestClient[Any], oracle: OracleService) -> None:
    oracle.will_answer(["a = 1", "print(a, end=None)", "b = 1", "", "a = 1", "c = 1"])
    oracle.runner.sureness, oracle.runner.outside_mass = 0.75, 0.25
    body = {**UNSURE, "constraint": "merge", "language": "python"}
    plain = client.post("/v1/apply", json=body).json()
    assert plain["decisions"] is None
    assert 0.25 < plain["confidence"] < 0.75, "perhaps none of the merges is meant"
    assert [finding["code"] for finding in plain["findings"]] == [
        "ambiguous_place",
        "low_confidence",
    ]
    result = client.post("/v1/apply", json={**body, "include": ["decisions"]}).json()
    (decision,) = result["decisions"]
    assert decision == {
        "line": 2,
        "chosen": {
            "text": "print(a, end=None)",
            "origin": "takes line 3 of the update",
            "probability": pytest.approx(0.75),
        },
        "alternatives": [
            {
                "text": "b = 1",
                "origin": "keeps line 2 of the original",
                "probability": pytest.approx(0.25),
            }
        ],
        "probability": pytest.approx(0.75),
        "outside_mass": 0.25,
    }
    streamed = client.post("/v1/apply", json={**body, "include": ["decisions"], "stream": True})
    assert events_of(streamed.text)[-1][1]["decisions"] == result["decisions"]
    free = client.post("/v1/apply", json={**UNSURE, "include": ["decisions"]}).json()
    assert free["decisions"] == []


def test_a_request_may_leave_the_model_out(
    client: TestClient[Any], oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle.runner.gate.clear()
    for use_model in ("auto", "never"):
        result = client.post("/v1/apply", json={**CERTAIN, "use_model": use_model}).json()
        assert (result["status"], result["source"]) == ("applied", "merge")
        assert (result["usage"]["total_tokens"], result["speculation"]["target_passes"]) == (0, 0)
    open_place = client.post("/v1/apply", json={**UNSURE, "use_model": "never"}).json()
    assert (open_place["status"], open_place["source"]) == ("needs_review", "merge")
    monkeypatch.setattr(oracle.service, "default_use_model", "never")
    assert client.post("/v1/apply", json=CERTAIN).json()["source"] == "merge"
    oracle.runner.gate.set()
    oracle.will_answer(["def shout(path):", "    base = clean(path)", "    print(base)"])
    asked = client.post("/v1/apply", json={**CERTAIN, "use_model": "always"}).json()
    assert asked["speculation"]["target_passes"] > 0


@pytest.mark.parametrize(
    ("change", "code", "field", "detail"),
    [
        ({"originall": "x"}, "unknown-field", "originall", "originall"),
        ({"sampling": {"temp": 1}}, "unknown-field", "sampling.temp", "temp"),
        ({"update": 5}, "invalid-field", "update", "str"),
        ({"k": "8"}, "invalid-field", "k", "`int"),
        ({"k": 0}, "invalid-field", "k", ">= 1"),
        ({"sampling": {"temperature": 3}}, "invalid-field", "sampling.temperature", "<= 2"),
        ({"original": {"base64": "!"}}, "invalid-field", "original.base64", "base64"),
        ({"original": {"bytes": "aa"}}, "unknown-field", "original.bytes", "bytes"),
        ({"scope": "line"}, "invalid-field", "scope", "line"),
        ({"constraint": "json"}, "invalid-field", "constraint", "json"),
        ({"use_model": "sometimes"}, "invalid-field", "use_model", "sometimes"),
        ({"include": ["tokens"]}, "invalid-field", "include[0]", "tokens"),
        ({"update": ""}, "empty-update", None, "0 lines"),
        ({"update": "\n  \n"}, "empty-update", None, "2 lines"),
        ({"update": "```\n\n```"}, "empty-update", None, "lines and no text"),
        ({"original": "a\0b"}, "binary-file", None, "NUL at byte 1"),
        ({"original": "", "update": "a\n# ...\n"}, "markers-without-file", None, "line 2"),
    ],
)
def test_bad_bodies_are_400_and_say_where(
    client: TestClient[Any], change: dict[str, Any], code: str, field: str | None, detail: str
) -> None:
    found = problem(client.post("/v1/apply", json={**EDIT, **change}), 400)
    assert found["code"] == code
    assert found.get("field") == field
    assert detail in found["detail"]


@pytest.mark.parametrize(
    ("body", "code", "detail"),
    [
        (b"{", "invalid-json", "line 1, column 2"),
        (b"", "invalid-json", "line 1, column 1"),
        (
            b'{"original": "a", "update": "ab\\ud800"}',
            "lone-surrogate",
            "update has .* character 2",
        ),
        (
            b'{"original": "\\ud800x", "update": "b"}',
            "lone-surrogate",
            "original has .* character 0",
        ),
        (b'{"original": "a\xff", "update": "b"}', "invalid-json", "UTF-8 at byte 15"),
        (b"[]", "invalid-field", "array"),
    ],
)
def test_bodies_that_are_no_json(
    client: TestClient[Any], body: bytes, code: str, detail: str
) -> None:
    response = client.post("/v1/apply", content=body, headers={"Content-Type": "application/json"})
    found = problem(response, 400)
    assert found["code"] == code
    assert re.search(detail, found["detail"])


def test_binary_bytes(client: TestClient[Any]) -> None:
    body = {**EDIT, "original": {"base64": base64.b64encode(b"\x7fELF\0").decode()}}
    assert problem(client.post("/v1/apply", json=body), 400)["code"] == "binary-file"


def test_unknown_model_is_404(client: TestClient[Any]) -> None:
    found = problem(client.post("/v1/apply", json={**EDIT, "model": "gpt-9"}), 404)
    assert found["code"] == "unknown-model"
    assert MODEL_NAME in found["detail"]
    for name in (MODEL_NAME, "auto"):
        assert client.post("/v1/apply", json={**EDIT, "model": name}).status_code == 200


@pytest.mark.parametrize("name", ["x" * 2000, "\x00\x1b[2J" * 100, "line\nline"])
def test_an_unknown_name_is_shown_in_short(client: TestClient[Any], name: str) -> None:
    asked = client.post("/v1/apply", json={**EDIT, "model": name})
    shown = client.get(f"/v1/models/{quote(name[:1000], safe='')}")
    for response in (asked, shown):
        found = response.json()
        detail = str(found.get("detail") or found["error"]["message"])
        assert response.status_code == 404
        assert "is not served" in detail
        assert detail.isprintable()
        assert len(detail.partition("' is not served")[0].partition("'")[2]) <= 200


def test_limits_say_value_limit_and_remedy(client: TestClient[Any]) -> None:
    found = problem(client.post("/v1/apply", json={**EDIT, "original": "x" * 20_001}), 413)
    assert (found["code"], found["value"], found["limit"]) == ("file-too-large", 20_001, 20_000)
    assert "max_file_bytes" in found["remedy"]
    unchecked = {**EDIT, "checks": "off"}
    found = problem(
        client.post("/v1/apply", json={**unchecked, "original": "x\n" * 5000, "scope": "file"}), 413
    )
    assert (found["code"], found["limit"]) == ("prompt-too-long", 4096)
    assert found["value"] > 20_000
    assert found["remedy"]
    body = {**unchecked, "sampling": {"max_tokens": 4096}}
    found = problem(client.post("/v1/apply", json=body), 413)
    assert (found["code"], found["limit"]) == ("prompt-too-long", 4096)
    found = problem(client.post("/v1/apply", json={**EDIT, "original": "x" * 100_000}), 413)
    assert (found["code"], found["limit"]) == ("body-too-large", 100_000)


def test_a_new_file_is_its_update(client: TestClient[Any]) -> None:
    result = client.post("/v1/apply", json={"original": "", "update": "a\r\nb"}).json()
    assert (result["merged"], result["source"], result["status"]) == ("a\r\nb", "update", "applied")
    assert result["usage"]["prompt_tokens"] == 0


def test_markers_alone_change_nothing(client: TestClient[Any]) -> None:
    result = client.post("/v1/apply", json={**EDIT, "update": "# ... existing code ...\n"}).json()
    assert (result["merged"], result["source"], result["status"]) == (
        ORIGINAL,
        "original",
        "unchanged",
    )


def test_a_deadline_that_passes_is_504(client: TestClient[Any], oracle: OracleService) -> None:
    oracle.runner.step_s = 0.05
    body = {**UNSURE, "deadline_s": 0.2, "speculation": "off"}
    assert problem(client.post("/v1/apply", json=body), 504)["code"] == "deadline-exceeded"
    events = events_of(client.post("/v1/apply", json={**body, "stream": True}).text)
    assert events[-1][0] == "error"
    assert events[-1][1]["code"] == "deadline-exceeded"


def test_a_mistake_of_ours_is_500_without_its_text(
    client: TestClient[Any], oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_options: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(oracle.service, "check_options", fail)
    found = problem(client.post("/v1/apply", json=EDIT), 500)
    assert found["code"] == "internal"
    assert "secret" not in found["detail"]


def test_other_addresses_and_methods(client: TestClient[Any]) -> None:
    assert problem(client.get("/v1/nothing"), 404)["code"] == "not-found"
    assert problem(client.get("/v1/apply"), 405)["code"] == "method-not-allowed"


def test_models_and_health(client: TestClient[Any]) -> None:
    models = client.get("/v1/models").json()
    served, *others = models["data"]
    assert 0 < served.pop("created") <= time.time()
    assert served == {
        "id": MODEL_NAME,
        "root": MODEL_NAME,
        "object": "model",
        "owned_by": "apply-service",
        "system_fingerprint": FINGERPRINT,
        "max_context_tokens": 4096,
        "profile": "embedded",
    }
    assert models["object"] == "list"
    assert tuple(model["id"] for model in others) == DEFAULT_ALIASES
    assert {model["root"] for model in others} == {MODEL_NAME}
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready", "model": "ready"}


def test_metrics_count_results_and_problems(client: TestClient[Any]) -> None:
    client.post("/v1/apply", json=EDIT)
    client.post("/v1/apply", json={**EDIT, "update": ""})
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    for sample in (
        'apply_requests_total{result="applied"} 1.0',
        'apply_requests_total{result="empty-update"} 1.0',
        "apply_kv_cache_blocks 512.0",
        "apply_e2e_request_latency_seconds_count 1.0",
        'apply_http_requests_total{method="POST",route="/v1/apply",status="200"} 1.0',
        'apply_http_requests_total{method="POST",route="/v1/apply",status="400"} 1.0',
    ):
        assert sample in response.text
    assert "apply_spec_decode_num_draft_tokens_total" in response.text


@pytest.mark.parametrize("path", ["/schema", "/schema/openapi.json"])
def test_schema_describes_the_body_and_the_problems(client: TestClient[Any], path: str) -> None:
    schema = client.get(path).json()
    operation = schema["paths"]["/v1/apply"]["post"]
    both = operation["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
    one, several = (
        schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"]
        for body in both
    )
    assert {"original", "update", "checks", "stream", "sampling"} <= set(one)
    assert {"files", "update", "checks", "atomic", "sampling"} <= set(several)
    assert {"200", "400", "413", "422", "429", "504"} <= set(operation["responses"])
    assert "/apply" in schema["paths"]


@pytest.mark.parametrize("path", ["/v1/apply", "/v1/chat/completions", "/v1/messages"])
def test_of_a_model_that_is_not_served_little_comes_back(
    client: TestClient[Any], path: str
) -> None:
    body = {
        **(EDIT if path == "/v1/apply" else {"messages": [{"role": "user", "content": "a"}]}),
        **({"max_tokens": 1} if path == "/v1/messages" else {}),
        "model": "gpt-" + "9" * 10_000,
    }
    response = client.post(path, json=body)
    assert response.status_code == 404
    assert "gpt-999" in response.text
    assert len(response.text) < 1000
    response = client.get("/v1/models/" + "9" * 10_000)
    assert response.status_code == 404
    assert len(response.text) < 1000
