"""Both clients against the real service: results, bytes, streams, errors, many edits at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apply_client import (
    APIStatusError,
    ApplyClient,
    ApplyOptions,
    ApplyResult,
    BadRequestError,
    Edit,
    EditRejectedError,
    FileEdit,
    FilesEdit,
    NotFoundError,
    RegionDone,
    RegionStarted,
    Token,
    TooLargeError,
    UnprocessableEditError,
)
from client_callers import CALLERS, Caller
from oracle_service import OracleService
from server_thread import serving

ORIGINAL = (
    "import sys\n\n\ndef greet(name):\n    print(name)\n\n\ndef main():\n    greet(sys.argv[1])\n"
)
MERGED = ORIGINAL.replace("greet(name)", "greet(name, mark)").replace(
    "print(name)", "print(name + mark)"
)
UPDATE = (
    "# ... existing code ...\ndef greet(name, mark):\n    print(name + mark)\n"
    "# ... existing code ..."
)
LOST_DIFF = "@@ -1 +1 @@\n-nowhere\n+somewhere\n"
NO_MODEL = ApplyOptions(use_model="never")


@pytest.fixture(scope="module")
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir)


@pytest.fixture(scope="module")
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as address:
        yield address


@pytest.fixture(params=sorted(CALLERS))
def caller(request: pytest.FixtureRequest, url: str) -> Caller:
    return CALLERS[request.param](url)


def test_text_in_text_out(caller: Caller) -> None:
    result = caller.apply(Edit(ORIGINAL, UPDATE, path="greet.py", options=NO_MODEL))
    assert (result.status, result.merged, result.source) == ("applied", MERGED, "merge")
    assert result.is_sure
    assert result.diff is not None
    assert result.diff.startswith("--- a/greet.py\n")
    assert [line.line for line in result.removed_lines] == [4, 5]
    assert caller.apply(Edit(MERGED, MERGED, options=NO_MODEL)).status == "unchanged"


@pytest.mark.parametrize(
    ("encoding", "line_end"),
    [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-16", "\n"), ("utf-32", "\r\n")],
)
def test_bytes_in_bytes_out(caller: Caller, encoding: str, line_end: str) -> None:
    original = ORIGINAL.replace("\n", line_end).encode(encoding)
    result = caller.apply(Edit(original, UPDATE, options=NO_MODEL))
    assert result.merged == MERGED.replace("\n", line_end).encode(encoding)


def test_several_files_are_applied_all_or_none(caller: Caller) -> None:
    sure = FileEdit("a.py", b"a = 1\n", [{"old_string": "1", "new_string": "2"}])
    unsure = FileEdit("b.py", "b = 1\n\nb = 1\n", [{"old_string": "b = 1", "new_string": "b = 2"}])
    edit = FilesEdit([sure, unsure], is_atomic=True, options=NO_MODEL)
    asked = caller.apply_files(edit)
    assert (asked.is_sure, asked.in_doubt) == (False, ("b.py",))
    assert [file.result for file in asked.files] == [None, None]
    first, second = (file.problem for file in asked.files)
    assert first is not None
    assert first.code == "withheld"
    assert second is not None
    assert second.choices is not None
    done = caller.apply_files(edit.resolved({"b.py": second.choices[0].id}))
    assert done.is_sure
    merged = [file.result.merged for file in done.files if file.result is not None]
    assert merged[0] == b"a = 2\n"
    assert merged[1] in ("b = 2\n\nb = 1\n", "b = 1\n\nb = 2\n")
    with pytest.raises(BadRequestError):
        caller.apply_files(FilesEdit([]))


def test_the_model_writes_into_a_stream(caller: Caller, oracle: OracleService) -> None:
    oracle.will_answer(MERGED.splitlines())
    *events, result = caller.stream(
        Edit(ORIGINAL, UPDATE, options=ApplyOptions(scope="file", use_model="always"))
    )
    assert isinstance(result, ApplyResult)
    assert (result.merged, result.source) == (MERGED, "model")
    assert events[0] == RegionStarted(region=0, start_line=1, end_line=9)
    assert events[-1] == RegionDone(region=0)
    written = "".join(event.text for event in events if isinstance(event, Token))
    assert written.splitlines() == MERGED.splitlines()


def test_a_rejected_result_has_findings_with_hints(caller: Caller) -> None:
    edit = Edit(ORIGINAL, LOST_DIFF, path="greet.py", options=NO_MODEL)
    with pytest.raises(EditRejectedError) as caught:
        caller.apply(edit)
    assert [finding.severity for finding in caught.value.findings] == ["error"]
    assert all(finding.hint for finding in caught.value.findings)
    assert caught.value.request_id
    assert caught.value.request_id.startswith("req-")
    with pytest.raises(EditRejectedError):
        caller.stream(edit)
    unchecked = ApplyOptions(use_model="never", checks="off")
    assert caller.apply(Edit(edit.original, edit.update, options=unchecked)).status == "rejected"


@pytest.mark.parametrize(
    ("edit", "kind", "code"),
    [
        (Edit(ORIGINAL, ""), BadRequestError, "empty-update"),
        (Edit("x = 1\n" * 4000, UPDATE), TooLargeError, "file-too-large"),
        (
            Edit(ORIGINAL, UPDATE, options=ApplyOptions(model="none")),
            NotFoundError,
            "unknown-model",
        ),
        (Edit(b"\0\1\2", UPDATE), BadRequestError, "binary-file"),
        (Edit(ORIGINAL, "x = 1", options=NO_MODEL), UnprocessableEditError, "no-marker"),
    ],
)
def test_refusals_are_typed(
    caller: Caller, edit: Edit[str], kind: type[APIStatusError], code: str
) -> None:
    for call in (caller.apply, caller.stream):
        with pytest.raises(kind) as caught:
            call(edit)
        assert caught.value.code == code
        assert caught.value.problem.detail in str(caught.value)


def test_many_edits_at_once(caller: Caller) -> None:
    edits = [
        Edit(ORIGINAL + f"A_{number} = 1\n", UPDATE, path="a.py", options=NO_MODEL)
        for number in range(12)
    ]
    edits[5] = Edit("a = 1\n", "", options=NO_MODEL)
    outcomes = sorted(caller.apply_many(edits, max_concurrency=3), key=lambda one: one.position)
    assert [outcome.position for outcome in outcomes] == list(range(12))
    for outcome, edit in zip(outcomes, edits, strict=True):
        assert outcome.edit == edit
        if outcome.position == 5:
            assert isinstance(outcome.error, BadRequestError)
        else:
            assert outcome.result is not None
            assert outcome.result.merged == MERGED + f"A_{outcome.position} = 1\n"
    with pytest.raises(ValueError, match="max_concurrency is 0"):
        caller.apply_many(edits, max_concurrency=0)


def test_status_and_models(caller: Caller) -> None:
    assert caller.status().is_ready
    model, *_ = caller.models()
    assert (model.id, model.profile, model.max_context_tokens) == ("oracle", "embedded", 4096)


def test_the_environment_says_where(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_SERVICE_URL", url)
    with ApplyClient() as client:
        assert client.apply(ORIGINAL, UPDATE, options=NO_MODEL).merged == MERGED
