"""Large files in a process of their own: the same results, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import text_jobs
from oracle_service import OracleService
from pipeline_session import functions, make_edit, outcome_of, session

from apply_service.conclusion import conclude, try_conclude_merge
from apply_service.edit.snippet_error import EmptySnippetError
from apply_service.edit_plan import EditPlan, plan_edit
from apply_service.errors import BusyError, FileTooLargeError, ShuttingDownError, TextWorkerError
from apply_service.outcome import Outcome
from apply_service.text_work import MAX_WAITING_PER_WORKER, TextWork
from batching.events import RequestStats

LIMIT = 50_000
WAIT_S = 30.0
NAMES = [f"name_{number}" for number in range(600)]
ORIGINAL = functions(NAMES)
UPDATE = (
    "# ... existing code ...\ndef name_300(value):\n    total_name_300 = value + 301\n"
    "    for step in range(300):\n# ... existing code ...\n"
)
EDIT = make_edit(ORIGINAL, UPDATE, use_model="never")
SMALL = make_edit(functions(NAMES[:9]), "# ...\ndef name_6(value):\n    return 0\n# ...\n")

Scenario = Callable[[TextWork], Awaitable[None]]


def with_worker(scenario: Scenario, *, num_workers: int = 1) -> None:
    """A scenario with workers that have all ended after it."""

    async def play() -> None:
        async with workers(num_workers) as text_work:
            await scenario(text_work)

    asyncio.run(play())


@asynccontextmanager
async def workers(num_workers: int) -> AsyncIterator[TextWork]:
    text_work = TextWork(num_workers=num_workers, large_file_bytes=LIMIT)
    ids: list[int] = []
    try:
        yield text_work
    finally:
        ids = text_work.process_ids
        await text_work.close()
    assert not [process_id for process_id in ids if is_running(process_id)]


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


async def until_begun(mark: Path) -> int:
    """The id of the process that has begun."""
    deadline = time.monotonic() + WAIT_S
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < deadline, "the work never began"
        await asyncio.sleep(0.01)
    return int(mark.read_text())


def same_but_for_time(outcome: Outcome | None) -> Outcome:
    assert outcome is not None
    return replace(outcome, total_s=0.0)


def without_figures(outcome: Outcome) -> Outcome:
    return replace(outcome, request_id="", total_s=0.0, stats=RequestStats.total(()))


def same_but_for_name(plan: EditPlan) -> EditPlan:
    return replace(plan, request_id="", started_at=0.0)


def test_plans_and_verdicts_are_those_of_the_server_itself() -> None:
    async def scenario(text_work: TextWork) -> None:
        plan = await text_work.run(EDIT, plan_edit, EDIT, max_file_bytes=1 << 20)
        here = plan_edit(EDIT, max_file_bytes=1 << 20)
        assert same_but_for_name(plan) == same_but_for_name(here)
        assert plan.merge is not None
        assert plan.merge.best is not None
        merged = await text_work.run(EDIT, try_conclude_merge, plan)
        assert same_but_for_time(merged) == same_but_for_time(try_conclude_merge(plan))
        assert merged is not None
        assert merged.verdict.status == "applied"
        damaged = (*plan.original_lines[:400], *plan.original_lines[420:])
        judged = await text_work.run(EDIT, conclude, plan, damaged, source="model")
        assert same_but_for_time(judged) == same_but_for_time(
            conclude(plan, damaged, source="model")
        )
        assert judged.verdict.findings
        assert len(text_work.process_ids) == 1

    with_worker(scenario)


def test_only_large_files_start_a_process_which_has_neither_torch_nor_the_server() -> None:
    async def scenario(text_work: TextWork) -> None:
        assert await text_work.run(SMALL, text_jobs.process_id) == os.getpid()
        assert not text_work.process_ids
        first = await text_work.run(EDIT, text_jobs.process_id)
        assert text_work.process_ids == [first]
        assert first != os.getpid()
        assert await text_work.run(EDIT, text_jobs.process_id) == first
        await text_work.run(EDIT, plan_edit, EDIT, max_file_bytes=1 << 20)
        names = set(await text_work.run(EDIT, text_jobs.module_names))
        assert not names & {"torch", "transformers", "litestar", "uvicorn", "tokenizers"}

    with_worker(scenario, num_workers=2)


def test_without_workers_everything_is_done_here() -> None:
    async def scenario() -> None:
        text_work = TextWork(large_file_bytes=0)
        assert await text_work.run(EDIT, text_jobs.process_id) == os.getpid()
        text_work.check_room(EDIT)
        await text_work.close()

    asyncio.run(scenario())


def test_errors_come_back_as_what_they_are() -> None:
    async def scenario(text_work: TextWork) -> None:
        with pytest.raises(FileTooLargeError, match=r"the original has \d+ bytes, the limit is 9"):
            await text_work.run(EDIT, plan_edit, EDIT, max_file_bytes=9)
        with pytest.raises(FileTooLargeError) as caught:
            await text_work.run(EDIT, text_jobs.refuse)
        assert (caught.value.value, caught.value.limit, caught.value.remedy) == (7, 5, "send less")
        assert str(caught.value) == "the original has 7 bytes, the limit is 5; send less"
        empty = replace(EDIT, update="")
        with pytest.raises(EmptySnippetError):
            await text_work.run(EDIT, plan_edit, empty, max_file_bytes=1 << 20)
        assert len(text_work.process_ids) == 1, "an error that was foreseen ends no process"

    with_worker(scenario)


def test_work_that_is_killed_is_done_again_and_the_second_time_fails(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        first = await text_work.run(EDIT, text_jobs.process_id)
        second = await text_work.run(EDIT, text_jobs.die_once, tmp_path / "mark")
        assert second not in (first, os.getpid())
        with pytest.raises(TextWorkerError, match="set large_file_workers to 0"):
            await text_work.run(EDIT, text_jobs.die)
        third = await text_work.run(EDIT, text_jobs.process_id)
        os.kill(third, signal.SIGKILL)
        assert await text_work.run(EDIT, text_jobs.process_id) != third

    with_worker(scenario)


def test_a_mistake_fails_one_request_and_is_written_to_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def scenario(text_work: TextWork) -> None:
        with pytest.raises(TextWorkerError):
            await text_work.run(EDIT, text_jobs.make_mistake)
        assert await text_work.run(EDIT, text_jobs.process_id)

    with_worker(scenario)
    assert "ZeroDivisionError: a mistake" in capfd.readouterr().err


def test_a_cancelled_request_leaves_the_worker_to_the_others(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        busy = asyncio.create_task(text_work.run(EDIT, text_jobs.wait_after, tmp_path / "mark"))
        process_id = await until_begun(tmp_path / "mark")
        waiting = asyncio.create_task(text_work.run(EDIT, text_jobs.die))
        await asyncio.sleep(0)
        waiting.cancel()
        busy.cancel()
        ended = await asyncio.gather(waiting, busy, return_exceptions=True)
        assert [type(one) for one in ended] == [asyncio.CancelledError] * 2
        os.kill(process_id, signal.SIGKILL)
        assert await text_work.run(EDIT, text_jobs.process_id) != process_id

    with_worker(scenario)


def test_closing_ends_what_is_under_way_and_what_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        text_work = TextWork(num_workers=1, large_file_bytes=LIMIT)
        busy = asyncio.create_task(text_work.run(EDIT, text_jobs.wait_after, tmp_path / "mark"))
        waiting = asyncio.create_task(text_work.run(EDIT, text_jobs.process_id))
        process_id = await until_begun(tmp_path / "mark")
        await text_work.close()
        ended = await asyncio.gather(busy, waiting, return_exceptions=True)
        assert [type(one) for one in ended] == [ShuttingDownError] * 2
        assert not is_running(process_id)
        with pytest.raises(ShuttingDownError):
            await text_work.run(EDIT, text_jobs.process_id)

    asyncio.run(scenario())


def test_more_than_can_be_planned_in_time_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        text_work = TextWork(num_workers=1, large_file_bytes=LIMIT)
        tasks = [
            asyncio.create_task(text_work.run(EDIT, text_jobs.wait_after, tmp_path / "mark"))
            for _ in range(MAX_WAITING_PER_WORKER)
        ]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="16 large files wait") as caught:
            text_work.check_room(EDIT)
        assert caught.value.retry_after_s > 0
        text_work.check_room(SMALL)
        await text_work.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())


def test_the_pipeline_gives_the_same_outcome_with_and_without_workers(
    tiny_model_dir: Path,
) -> None:
    edits = [EDIT, replace(EDIT, use_model="always", constraint="merge")]

    async def outcomes(text_work: TextWork) -> list[Outcome]:
        oracle = OracleService(tiny_model_dir, max_file_bytes=1 << 20)
        async with session(oracle, text_work) as here:
            found = [outcome_of(await here.collect(edit)) for edit in edits]
        return [without_figures(outcome) for outcome in found]

    async def scenario(text_work: TextWork) -> None:
        found = await outcomes(text_work)
        assert [outcome.source for outcome in found] == ["merge", "model"]
        assert len(text_work.process_ids) == 1
        assert found == await outcomes(TextWork())

    with_worker(scenario)
