"""The pipeline by itself: what it refuses, what it asks for, what it makes of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from oracle_service import OracleService
from pipeline_session import Session

from apply_service.apply import intake
from apply_service.apply.edit_request import EditRequest, SamplingOptions
from apply_service.apply.errors import BusyError, FileTooLargeError, PromptTooLongError
from apply_service.apply.events import (
    RegionDone,
    RegionStarted,
    RegionText,
    RunEvent,
)
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import ApplyPipeline
from apply_service.edit.read.snippet_error import EmptySnippetError
from apply_service.edit.text.text_file import LoneSurrogateError, TextFile
from batching.async_engine import AsyncEngine

ORIGINAL = "a = 1\nb = 2\nc = 3\n"
UPDATE = "# ... existing code ...\nb = 2\nprint('done', file=log)\nc = 3\n"
MERGED = ["a = 1", "b = 2", "print('done', file=log)", "c = 3"]

Run = Callable[[EditRequest], list[RunEvent | Outcome]]
RunAll = Callable[[Sequence[EditRequest]], list[list[RunEvent | Outcome]]]


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir, max_position=400)
    oracle.will_answer(MERGED)
    return oracle


@pytest.fixture
def run_all(oracle: OracleService) -> RunAll:
    """Runs edits one after the other in one pipeline."""

    async def collect(edits: Sequence[EditRequest]) -> list[list[RunEvent | Outcome]]:
        engine = AsyncEngine(oracle.make_engine())
        engine.start()
        try:
            here = Session(ApplyPipeline.on_engine(engine, oracle.profile, oracle.limits), engine)
            return [await here.collect(edit) for edit in edits]
        finally:
            await engine.stop()

    return lambda edits: asyncio.run(collect(edits))


@pytest.fixture
def run(run_all: RunAll) -> Run:
    return lambda edit: run_all([edit])[0]


@pytest.fixture
def num_planned(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many edits have been planned from the start."""
    planned: list[EditRequest] = []

    def plan_edit_counted(edit: EditRequest, **options: Any) -> EditPlan:
        planned.append(edit)
        return plan_edit(edit, **options)

    monkeypatch.setattr(intake, "plan_edit", plan_edit_counted)
    return lambda: len(planned)


def edit(update: str = UPDATE, **options: object) -> EditRequest:
    original = TextFile.from_text(str(options.pop("original", ORIGINAL)))
    if options.get("path") is None:
        options.setdefault("language", "python")
    options.setdefault("use_model", "always")
    return EditRequest(original=original, update=update, **options)  # type: ignore[arg-type]


def outcome(items: list[RunEvent | Outcome]) -> Outcome:
    assert isinstance(items[-1], Outcome)
    return items[-1]


def test_pieces_then_the_outcome(run: Run) -> None:
    items = run(edit(max_draft_tokens=2))
    assert items[0] == RegionStarted(0, 0, 3)
    assert items[-2] == RegionDone(0)
    pieces = [item.text for item in items if isinstance(item, RegionText)]
    assert "".join(pieces) == "\n".join(MERGED)
    result = outcome(items)
    assert result.merged == "a = 1\nb = 2\nprint('done', file=log)\nc = 3\n"
    assert result.verdict.status == "applied"
    assert result.stats.num_output_tokens > result.stats.decode_passes


@pytest.mark.parametrize("path", ["a.py", None])
def test_a_fence_around_the_update_is_no_text(run: Run, path: str | None) -> None:
    assert outcome(run(edit(f"```python\n{UPDATE}```\n", path=path))).verdict.status == "applied"


def test_line_endings_and_final_newline_are_the_files_own(run: Run) -> None:
    crlf = outcome(run(edit(original="a = 1\r\nb = 2\r\nc = 3")))
    assert crlf.merged == "a = 1\r\nb = 2\r\nprint('done', file=log)\r\nc = 3"
    assert outcome(run(edit(UPDATE.replace("\n", "\r\n")))).merged == "\n".join([*MERGED, ""])


def test_an_instruction_and_a_prediction_are_taken(run: Run) -> None:
    plain = outcome(run(edit())).stats
    told = outcome(run(edit(instruction="Add b2.", prediction="\n".join(MERGED)))).stats
    assert told.num_prompt_tokens > plain.num_prompt_tokens


def test_what_cannot_be_applied_is_refused(run: Run) -> None:
    with pytest.raises(EmptySnippetError):
        run(edit(" \n"))
    for name in ("update", "instruction", "prediction", "path"):
        with pytest.raises(LoneSurrogateError, match=f"the {name} has .* character 1"):
            run(edit(**{name: "a\ud800"}))
    with pytest.raises(FileTooLargeError, match="the update has 20001 bytes, the limit is 20000"):
        run(edit("x" * 20_001))
    with pytest.raises(PromptTooLongError, match='the limit is 400; leave scope at "auto"'):
        run(edit(original=ORIGINAL * 30, scope="file", has_fallback=False))
    with pytest.raises(PromptTooLongError, match="the limit is 400; lower max_tokens"):
        run(edit(sampling=SamplingOptions(max_tokens=400), has_fallback=False))


def test_an_answer_that_never_ends_is_truncated(run: Run, oracle: OracleService) -> None:
    oracle.runner.answer = oracle.runner.answer[:4] * 200
    result = outcome(run(edit(has_fallback=False)))
    assert result.verdict.status == "rejected"
    assert [finding.code for finding in result.verdict.findings] == ["truncated"]
    assert result.stats.num_output_tokens < 200


def test_nothing_but_a_new_file_needs_no_model(run: Run, oracle: OracleService) -> None:
    oracle.runner.gate.clear()
    new_file = outcome(run(edit("x = 1\n", original="")))
    assert (new_file.merged, new_file.source) == ("x = 1\n", "update")
    kept = outcome(run(edit("# ...\n")))
    assert (kept.merged, kept.source, kept.verdict.status) == (ORIGINAL, "original", "unchanged")
    assert kept.diff == ""


def test_an_edit_sent_again_is_not_planned_again(
    run_all: RunAll, num_planned: Callable[[], int]
) -> None:
    first, again, other = run_all(
        [edit(), edit(prediction=ORIGINAL), edit(cache_salt=b"another tenant")]
    )
    assert num_planned() == 2
    outcomes = [items[-1] for items in (first, again, other)]
    assert all(isinstance(one, Outcome) and one.verdict.status == "applied" for one in outcomes)
    assert len({one.request_id for one in outcomes if isinstance(one, Outcome)}) == 3


def test_what_an_edit_brings_along_is_checked_each_time(
    run_all: RunAll, num_planned: Callable[[], int]
) -> None:
    with pytest.raises(LoneSurrogateError, match="the prediction"):
        run_all([edit(), edit(prediction="\ud800")])
    assert num_planned() == 1


def test_an_edit_sent_again_is_refused_too_where_there_is_no_room(
    run_all: RunAll, num_planned: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_room(text_work: TextWork, edit: EditRequest) -> None:
        if num_planned():
            raise BusyError("16 large files wait", retry_after_s=1.0)

    monkeypatch.setattr(TextWork, "check_room", check_room)
    with pytest.raises(BusyError, match="16 large files"):
        run_all([edit(), edit()])
