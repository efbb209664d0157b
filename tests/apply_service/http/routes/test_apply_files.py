"""`POST /v1/apply` with several files: an answer for each, or nothing unless all are applied."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_server import guarded
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient
from oracle_service import OracleService

from apply_service.apply.outcome import Outcome
from apply_service.http.app import create_app
from apply_service.http.files_body import MAX_FILES, FileBody, FilesBody
from apply_service.http.guard.keys.authentication import AccessRules
from apply_service.http.guard.limits.rate_limits import RateLimits, RateLimitSettings
from apply_service.http.routes.files_run import answer_files
from apply_service.service import ApplyService

SURE = {"path": "sure.py", "original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n"}
MERGED = "a = 1\nb = 3\n"
UNSURE = {
    "path": "unsure.py",
    "original": "x = 1\n\ny = 2\n\nx = 1\n",
    "update": [{"old_string": "x = 1", "new_string": "x = 3"}],
}
WRONG = {
    "path": "wrong.py",
    "original": "a = 1\n",
    "update": "<<<<<<< SEARCH\nz = 1\n=======\nz = 2\n>>>>>>> REPLACE\n",
}
BINARY = {"path": "binary.py", "original": "a\0", "update": "b"}


@pytest.fixture(scope="module")
def service(tiny_model_dir: Path) -> ApplyService:
    service = OracleService(tiny_model_dir).service
    service.default_use_model = "never"
    return service


@pytest.fixture(scope="module")
def client(service: ApplyService) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(service, max_body_bytes=200_000)) as client:
        yield client


def ask(client: TestClient[Any], *files: dict[str, Any], **options: Any) -> dict[str, Any]:
    response = client.post("/v1/apply", json={"files": files, **options})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def refusal(client: TestClient[Any], body: dict[str, Any]) -> tuple[int, str, str | None]:
    response = client.post("/v1/apply", json=body)
    problem = response.json()
    assert problem["status"] == response.status_code
    return response.status_code, problem["code"], problem.get("field")


def test_an_update_may_not_name_more_files_than_a_request(client: TestClient[Any]) -> None:
    heads = "".join(f"*** Add File: f{number}.py\n+x\n" for number in range(MAX_FILES))
    file = {"path": "sure.py", "original": ""}
    for added, status in (("", 200), ("*** Add File: more.py\n+x\n", 413)):
        update = f"*** Begin Patch\n{heads}{added}*** End Patch\n"
        assert (
            client.post("/v1/apply", json={"files": [file], "update": update}).status_code == status
        )


def never_split(_update: str, **_options: object) -> None:
    """What a splitter does with an update that is too much for it."""
    time.sleep(5)


def test_splitting_ends_at_the_deadline(
    client: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apply_service.http.routes.files_run.split_update", never_split)
    file = {"path": "sure.py", "original": SURE["original"]}
    body = {"files": [file], "update": "--- a/sure.py\n+++ b/sure.py\n", "deadline_s": 0.1}
    assert refusal(client, body) == (504, "deadline-exceeded", None)


def test_each_file_has_the_answer_that_it_has_alone(client: TestClient[Any]) -> None:
    answer = ask(client, SURE, UNSURE, WRONG, BINARY)
    assert [file["path"] for file in answer["files"]] == [
        file["path"] for file in (SURE, UNSURE, WRONG, BINARY)
    ]
    assert (answer["status"], answer["atomic"]) == ("failed", False)
    assert answer["in_doubt"] == ["unsure.py"]
    changing = {"id", "timing", "request_id"}
    for sent, file in zip((SURE, UNSURE, WRONG, BINARY), answer["files"], strict=True):
        alone = client.post("/v1/apply", json=sent).json()
        found = file.get("result") or file["problem"]
        assert {name: found[name] for name in found if name not in changing} == {
            name: alone[name] for name in alone if name not in changing
        }
    assert answer["files"][0]["result"]["merged"] == MERGED


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ([SURE], "applied"),
        ([{**SURE, "update": SURE["original"]}], "unchanged"),
        ([SURE, {**SURE, "path": "b.py", "update": SURE["original"]}], "applied"),
        ([SURE, UNSURE], "needs_review"),
        ([UNSURE, WRONG], "rejected"),
        ([WRONG, BINARY], "failed"),
    ],
)
@pytest.mark.parametrize("atomic", [False, True])
def test_the_status_is_the_worst_one_of_a_file(
    client: TestClient[Any], files: list[dict[str, Any]], status: str, atomic: bool
) -> None:
    assert ask(client, *files, atomic=atomic)["status"] == status


def test_an_atomic_request_shows_no_text_unless_all_are_applied(client: TestClient[Any]) -> None:
    answer = ask(client, SURE, UNSURE, atomic=True)
    assert (answer["status"], answer["in_doubt"]) == ("needs_review", ["unsure.py"])
    sure, unsure = answer["files"]
    assert (sure["problem"]["code"], sure["problem"]["status"]) == ("withheld", 424)
    assert "unsure.py" in sure["problem"]["detail"]
    assert unsure["problem"]["code"] == "needs-review"
    choices = unsure["problem"]["choices"]
    assert len(choices) == 2
    assert '"merged"' not in json.dumps(answer)
    assert "b = 3" not in json.dumps(answer)
    for choice, expected in zip(choices, ("x = 3\n\ny = 2\n\nx = 1\n",) * 2, strict=True):
        again = ask(client, SURE, {**UNSURE, "resolve": choice["id"]}, atomic=True)
        assert again["status"] == "applied"
        assert again["files"][0]["result"]["merged"] == MERGED
        resolved = again["files"][1]["result"]["merged"]
        assert sorted(resolved.split("\n")) == sorted(expected.split("\n"))
    stale = ask(client, SURE, {**UNSURE, "resolve": "0" * 16}, atomic=True)
    assert (stale["status"], stale["in_doubt"]) == ("needs_review", ["unsure.py"])
    assert [file["problem"]["status"] for file in stale["files"]] == [424, 409]


PATCH = """\
*** Begin Patch
*** Update File: sure.py
@@
 a = 1
-b = 2
+b = 3
*** Add File: pkg/new.py
+import os
+
+print(os)
*** Add File: pkg/__init__.py
*** Delete File: gone.py
*** Update File: moved.py
*** Move to: there.py
@@
-c = 1
+c = 2
*** End Patch
"""
ORIGINALS = [
    {"path": "src/sure.py", "original": SURE["original"]},
    {"path": "other.py", "original": "o = 1\n"},
    {"path": "moved.py", "original": "c = 1\n"},
]


@pytest.mark.parametrize("atomic", [False, True])
def test_a_patch_goes_to_its_files(client: TestClient[Any], atomic: bool) -> None:
    answer = ask(client, *ORIGINALS, update=PATCH, atomic=atomic)
    assert answer["status"] == "applied"
    came = {
        file["path"]: (file["action"], (file.get("result") or {}).get("merged"))
        for file in answer["files"]
    }
    assert came == {
        "src/sure.py": ("update", MERGED),
        "other.py": ("none", None),
        "moved.py": ("move", "c = 2\n"),
        "pkg/new.py": ("add", "import os\n\nprint(os)\n"),
        "pkg/__init__.py": ("add", None),
        "gone.py": ("delete", None),
    }
    assert [file.get("new_path") for file in answer["files"]] == [
        None,
        None,
        "there.py",
        *[None] * 3,
    ]


def test_a_diff_goes_to_its_files(client: TestClient[Any]) -> None:
    diff = (
        "diff --git a/sure.py b/sure.py\n--- a/sure.py\n+++ b/sure.py\n@@ -1,2 +1,2 @@\n"
        " a = 1\n-b = 2\n+b = 3\n--- a/moved.py\n+++ b/moved.py\n@@ -1 +1 @@\n-c = 1\n+c = 2\n"
    )
    answer = ask(client, *ORIGINALS, update=diff)
    merged = [(file.get("result") or {}).get("merged") for file in answer["files"]]
    assert merged == [MERGED, None, "c = 2\n"]


def test_a_patch_that_is_withheld_deletes_nothing(client: TestClient[Any]) -> None:
    patch = PATCH.replace("-b = 2\n", "-b = 7\n-z = 8\n")
    answer = ask(client, *ORIGINALS, update=patch, atomic=True)
    assert answer["status"] in ("rejected", "needs_review")
    assert not any("result" in file for file in answer["files"])
    problems = {file["path"]: file.get("problem") for file in answer["files"]}
    assert problems["gone.py"]["code"] == problems["pkg/new.py"]["code"] == "withheld"
    assert problems["other.py"] is None, "there is nothing to be done with it"


def test_options_are_those_of_all_and_bytes_stay_bytes(client: TestClient[Any]) -> None:
    latin = {"base64": base64.b64encode("é = 1\nb = 2\n".encode("latin-1")).decode()}
    bytes_file = {"path": "latin.py", "original": latin, "update": "b = 3\n"}
    patch = [{"old_string": "b = 2", "new_string": "b = 3"}]
    answer = ask(client, {**bytes_file, "update": patch}, SURE, response="file")
    first, second = (file["result"] for file in answer["files"])
    assert base64.b64decode(first["merged"]["base64"]) == "é = 1\nb = 3\n".encode("latin-1")
    assert (first["diff"], second["diff"]) == (None, None)
    best = ask(client, UNSURE, SURE, on_doubt="best")
    assert (best["status"], best["in_doubt"]) == ("applied", [])
    capped = ask(client, SURE, deadline_s=1e6)
    assert capped["deadline_s"] == 20.0
    assert capped["files"][0]["result"].get("deadline_s") is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"files": []}, (400, "invalid-field", "files")),
        ({"files": [SURE, SURE]}, (400, "unfit-files", "files[1].path")),
        *(
            ({"files": [SURE, {**SURE, "path": path}]}, (400, "unfit-files", "files[1].path"))
            for path in ("./sure.py", "lib/../sure.py", ".//sure.py", "./lib/.././sure.py")
        ),
        (
            {"files": [{**SURE, "path": one} for one in ("//a//b.py", "/a/b.py")]},
            (400, "unfit-files", "files[1].path"),
        ),
        ({"files": [{**SURE, "path": ""}]}, (400, "invalid-field", "files[0].path")),
        ({"files": [{"path": "a", "original": ""}]}, (400, "unfit-files", "files[0].update")),
        ({"files": [SURE], "update": PATCH}, (400, "unfit-files", "files[0].update")),
        ({"files": [SURE], "format": "diff"}, (400, "unfit-files", "format")),
        ({"files": [SURE], "stream": True}, (400, "invalid-field", "stream")),
        ({"files": [SURE], "original": "a"}, (400, "unknown-field", "original")),
        (
            {"files": [{**SURE, "use_model": "never"}]},
            (400, "unknown-field", "files[0].use_model"),
        ),
        ({"files": [SURE], "atomic": "yes"}, (400, "invalid-field", "atomic")),
        ({"files": 5}, (400, "invalid-field", "files")),
        ({"files": [SURE], "model": "other"}, (404, "unknown-model", None)),
        ({"files": ORIGINALS, "update": "x = 1"}, (422, "malformed-update", None)),
        ({"files": ORIGINALS[:1], "update": PATCH}, (422, "unsupported-update", None)),
        (
            {"files": [{**SURE, "path": str(number)} for number in range(MAX_FILES + 1)]},
            (413, "too-many-files", "files"),
        ),
    ],
)
def test_a_body_that_cannot_be_told_is_refused_whole(
    client: TestClient[Any], body: dict[str, Any], expected: tuple[int, str, str | None]
) -> None:
    assert refusal(client, body) == expected


def test_like_paths_are_different_files(client: TestClient[Any]) -> None:
    paths = ["sure.py", "lib/sure.py", "../sure.py", "/sure.py", "Sure.py", "sure.py.bak"]
    answer = ask(client, *({**SURE, "path": path} for path in paths))
    assert [(one["path"], one["result"]["status"]) for one in answer["files"]] == [
        (path, "applied") for path in paths
    ]


def test_a_body_that_only_speaks_of_files_is_one_edit(client: TestClient[Any]) -> None:
    body = {"original": 'x = "files"\n', "update": 'x = "more files"\n', "path": '"files"'}
    response = client.post("/v1/apply", json=body)
    assert response.json()["merged"] == 'x = "more files"\n'


def test_a_mistake_in_one_file_harms_no_other(
    client: TestClient[Any], service: ApplyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = service.apply

    async def fail_for_one(edit: Any, *rest: Any) -> Outcome:
        if edit.path == "wrong.py":
            raise RuntimeError("secret")
        return await apply(edit, *rest)

    monkeypatch.setattr(service, "apply", fail_for_one)
    answer = ask(client, SURE, WRONG)
    assert answer["status"] == "failed"
    assert answer["files"][0]["result"]["merged"] == MERGED
    assert answer["files"][1]["problem"]["code"] == "internal"
    assert "secret" not in json.dumps(answer)


def test_who_leaves_gives_all_files_up(
    service: ApplyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str | None] = []
    ended: list[str | None] = []

    async def wait_forever(edit: Any, *rest: Any) -> Outcome:
        begun.append(edit.path)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(edit.path)
        raise AssertionError("nobody sets the event")

    monkeypatch.setattr(service, "apply", wait_forever)
    files = [FileBody(path=str(number), original="a", update="b") for number in range(20)]

    async def leave() -> None:
        work = asyncio.create_task(answer_files(FilesBody(files=files), service, None))
        while len(begun) < 16:
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(leave())
    assert sorted(begun) == sorted(ended)
    assert len(begun) == 16, "no more are worked on at once"


def test_each_file_counts_as_a_request_before_it_is_worked_on(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    service = OracleService(tiny_model_dir, deadline_s=30.0).service
    service.default_use_model = "never"
    rules = AccessRules(is_private=False, allows_anonymous=True, metrics_need_key=True)
    limits = RateLimits(
        RateLimitSettings(requests_per_minute=5, tokens_per_minute=0, max_concurrent=2),
        clock=lambda: 1000.0,  # the next one is let in later than the deadline
    )
    files = [{**SURE, "path": str(number)} for number in range(5)]
    with (
        guarded(service, tmp_path, rules=rules, limits=limits) as server,
        server.client() as client,
    ):
        answer = client.post("/v1/apply", json={"files": files}).json()
    done = [file for file in answer["files"] if "result" in file]
    refused = [file["problem"]["code"] for file in answer["files"] if "problem" in file]
    assert len(done) == 4, "the request itself is the fifth"
    assert refused == ["rate-limited"]


values = st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=9)
odd_json = st.recursive(
    values,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "original", "update", "resolve"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)
lines = st.lists(st.sampled_from(PATCH.split("\n")) | st.text(max_size=5), max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    members=st.dictionaries(
        st.sampled_from(["files", "update", "atomic", "format", "on_doubt", "response"]),
        odd_json,
        max_size=3,
    ),
    patch=st.none() | lines.map("\n".join),
)
def test_no_body_breaks_the_server(
    client: TestClient[Any], members: dict[str, Any], patch: str | None
) -> None:
    body: dict[str, Any] = {"files": ORIGINALS if patch is not None else [SURE, UNSURE]}
    if patch is not None:
        body["update"] = patch
    response = client.post("/v1/apply", content=json.dumps(body | members))
    assert response.status_code in (200, 400, 413, 422), response.text
    if response.status_code == 200:
        answer = response.json()
        assert not any((file.get("problem") or {}).get("status") == 500 for file in answer["files"])
