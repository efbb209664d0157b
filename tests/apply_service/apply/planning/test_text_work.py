"""Text work in processes of its own: the same results, and what becomes of work that fails."""

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

from apply_service.apply.attempt import Attempt
from apply_service.apply.conclusion import conclude, try_conclude_merge
from apply_service.apply.errors import (
    BusyError,
    FileTooLargeError,
    ShuttingDownError,
    TextMemoryError,
    TextWorkerError,
    TextWorkStuckError,
)
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning import text_work as text_work_module
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.edit.read.snippet_error import EmptySnippetError
from batching.errors import DeadlineExceededError
from batching.events import RequestStats

WAIT_S = 30.0
NAMES = [f"name_{number}" for number in range(600)]
ORIGINAL = functions(NAMES)
UPDATE = (
    "# ... existing code ...\ndef name_300(value):\n    total_name_300 = value + 301\n"
    "    for step in range(300):\n# ... existing code ...\n"
)
EDIT = make_edit(ORIGINAL, UPDATE, use_model="never")
TERMS = WorkTerms(started_at=0.0)

Scenario = Callable[[TextWork], Awaitable[None]]


def with_worker(scenario: Scenario, *, num_workers: int = 1) -> None:
    """A scenario with workers that have all ended after it."""

    async def play() -> None:
        async with workers(num_workers) as text_work:
            await scenario(text_work)

    asyncio.run(play())


@asynccontextmanager
async def workers(num_workers: int) -> AsyncIterator[TextWork]:
    text_work = TextWork(num_workers=num_workers)
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


def is_paused(process_id: int) -> bool:
    return ") T " in Path(f"/proc/{process_id}/stat").read_text()


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
        plan = await text_work.run(TERMS, plan_edit, EDIT, max_file_bytes=1 << 20)
        here = plan_edit(EDIT, max_file_bytes=1 << 20)
        assert same_but_for_name(plan) == same_but_for_name(here)
        assert plan.merge is not None
        assert plan.merge.best is not None
        merged = await text_work.run(TERMS, try_conclude_merge, plan)
        assert same_but_for_time(merged) == same_but_for_time(try_conclude_merge(plan))
        assert merged is not None
        assert merged.verdict.status == "applied"
        damaged = (*plan.original_lines[:400], *plan.original_lines[420:])
        attempt = Attempt(source="model", lines=damaged)
        judged = await text_work.run(TERMS, conclude, plan, attempt)
        assert same_but_for_time(judged) == same_but_for_time(conclude(plan, attempt))
        assert judged.verdict.findings
        assert len(text_work.process_ids) == 1

    with_worker(scenario)


def within(seconds: float) -> WorkTerms:
    now = time.monotonic()
    return WorkTerms(started_at=now, deadline=now + seconds)


async def until_there(path: Path, *, num_files: int = 1) -> None:
    deadline = time.monotonic() + WAIT_S
    while not path.exists() or len(list(path.iterdir())) < num_files:
        assert time.monotonic() < deadline, "the work never began"
        await asyncio.sleep(0.01)


async def until_ended(process_ids: set[int]) -> None:
    deadline = time.monotonic() + WAIT_S
    while any(map(is_running, process_ids)):
        assert time.monotonic() < deadline, "it goes on"
        await asyncio.sleep(0.01)


def test_no_more_processes_than_needed_which_have_neither_torch_nor_the_server() -> None:
    async def scenario(text_work: TextWork) -> None:
        first = await text_work.run(TERMS, text_jobs.process_id)
        assert text_work.process_ids == [first]
        assert first != os.getpid()
        assert await text_work.run(TERMS, text_jobs.process_id) == first
        await text_work.run(TERMS, plan_edit, EDIT, max_file_bytes=1 << 20)
        names = set(await text_work.run(TERMS, text_jobs.module_names))
        assert not names & {"torch", "transformers", "litestar", "uvicorn", "tokenizers"}

    with_worker(scenario, num_workers=2)


def test_without_processes_everything_is_done_here() -> None:
    async def scenario() -> None:
        text_work = TextWork()
        assert await text_work.run(TERMS, text_jobs.process_id) == os.getpid()
        text_work.check_room(TERMS)
        text_work.check_ready()
        await text_work.close()

    asyncio.run(scenario())


def test_work_is_killed_at_its_deadline_and_other_work_is_not(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        other = asyncio.create_task(text_work.run(TERMS, text_jobs.spin_until, mark, begun))
        await until_there(begun)
        with pytest.raises(DeadlineExceededError, match="raise deadline_s"):
            await text_work.run(within(0.3), text_jobs.spin_until, tmp_path / "no", begun)
        with pytest.raises(DeadlineExceededError):
            await text_work.run(within(-1.0), text_jobs.process_id)
        mark.touch()
        process_id = await other
        assert await text_work.run(TERMS, text_jobs.process_id)
        await until_ended({int(path.name) for path in begun.iterdir()} - {process_id})

    with_worker(scenario, num_workers=2)


def test_work_has_a_limit_however_late_its_deadline_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_work_module, "MAX_WORK_S", 0.3)

    async def scenario(text_work: TextWork) -> None:
        with pytest.raises(TextWorkerError, match=r"longer than 0\.3 s"):
            await text_work.run(TERMS, text_jobs.spin_until, tmp_path / "no", tmp_path / "begun")
        with pytest.raises(TextWorkerError, match=r"longer than 0\.3 s"):
            await text_work.run(
                within(600.0), text_jobs.spin_until, tmp_path / "no", tmp_path / "begun"
            )

    with_worker(scenario)


def test_long_work_makes_room_for_new_work_and_is_done_all_the_same(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        long = [
            asyncio.create_task(text_work.run(TERMS, text_jobs.spin_until, mark, begun))
            for _ in range(3)
        ]
        await until_there(begun, num_files=2)
        for _ in range(3):
            assert await text_work.run(TERMS, text_jobs.process_id)
        assert not [task for task in long if task.done()]
        mark.touch()
        assert all(await asyncio.gather(*long))

    with_worker(scenario, num_workers=2)


def test_long_work_takes_turns(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        both = [
            asyncio.create_task(text_work.run(TERMS, text_jobs.spin_until, mark, begun))
            for _ in range(2)
        ]
        await until_there(begun, num_files=2)
        while not any(map(is_paused, text_work.process_ids)):
            await asyncio.sleep(0.01)
        mark.touch()
        assert len(set(await asyncio.gather(*both))) == 2

    with_worker(scenario, num_workers=3)


def test_owners_take_turns_and_small_edits_go_first(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        busy = asyncio.create_task(text_work.run(TERMS, text_jobs.wait_after, tmp_path / "mark"))
        process_id = await until_begun(tmp_path / "mark")
        journal = tmp_path / "journal"
        waiting = [
            asyncio.create_task(
                text_work.run(
                    WorkTerms(started_at=0.0, owner=owner, num_characters=num_characters),
                    text_jobs.note,
                    name,
                    journal,
                )
            )
            for owner, name, num_characters in [
                ("many", "large", 1 << 40),
                ("many", "first", 0),
                ("many", "second", 0),
                ("few", "other", 1 << 10),
            ]
        ]
        await asyncio.sleep(0)
        os.kill(process_id, signal.SIGKILL)
        await asyncio.gather(busy, *waiting)
        assert journal.read_text().split() == ["first", "other", "second", "large"]

    with_worker(scenario)


def test_nobody_holds_all_processes_while_another_waits(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        many, few = (WorkTerms(started_at=0.0, owner=name) for name in ("many", "few"))
        held = [
            asyncio.create_task(text_work.run(many, text_jobs.wait_until, mark, begun))
            for _ in range(3)
        ]
        await until_there(begun, num_files=2)
        assert await text_work.run(few, text_jobs.process_id)
        assert not [task for task in held if task.done()]
        mark.touch()
        assert all(await asyncio.gather(*held))

    with_worker(scenario, num_workers=2)


def test_a_small_edit_does_not_wait_for_large_ones_of_its_owner(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        large = WorkTerms(started_at=0.0, num_characters=1 << 40)
        held = asyncio.create_task(text_work.run(large, text_jobs.wait_until, mark, begun))
        await until_there(begun)
        assert await text_work.run(TERMS, text_jobs.process_id)
        assert not held.done()
        mark.touch()
        assert await held

    with_worker(scenario)


def test_nobody_does_all_long_work_while_another_waits(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        many, few = (
            WorkTerms(started_at=0.0, owner=name, num_characters=1 << 20)
            for name in ("many", "few")
        )
        held = [
            asyncio.create_task(text_work.run(many, text_jobs.wait_until, mark, begun))
            for _ in range(3)
        ]
        await until_there(begun, num_files=2)
        assert await text_work.run(few, text_jobs.process_id)
        assert not [task for task in held if task.done()]
        mark.touch()
        assert all(await asyncio.gather(*held))

    with_worker(scenario, num_workers=8)


def test_work_in_batch_priority_is_done_one_at_a_time(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        mark, begun = tmp_path / "mark", tmp_path / "begun"
        batch = WorkTerms(started_at=0.0, is_batch=True)
        both = [
            asyncio.create_task(text_work.run(batch, text_jobs.spin_until, mark, begun / name))
            for name in ("first", "second")
        ]
        begun.mkdir()
        await until_there(begun / "first")
        for _ in range(3):
            assert await text_work.run(TERMS, text_jobs.process_id)
        assert not (begun / "second").exists()
        mark.touch()
        assert all(await asyncio.gather(*both))

    with_worker(scenario, num_workers=3)


def test_too_much_memory_is_an_error_of_one_edit() -> None:
    async def scenario(text_work: TextWork) -> None:
        with pytest.raises(TextMemoryError, match="send a smaller file"):
            await text_work.run(TERMS, text_jobs.take_memory)
        assert await text_work.run(TERMS, text_jobs.process_id)

    with_worker(scenario)


def test_errors_come_back_as_what_they_are() -> None:
    async def scenario(text_work: TextWork) -> None:
        with pytest.raises(FileTooLargeError, match=r"the original has \d+ bytes, the limit is 9"):
            await text_work.run(TERMS, plan_edit, EDIT, max_file_bytes=9)
        with pytest.raises(FileTooLargeError) as caught:
            await text_work.run(TERMS, text_jobs.refuse)
        assert (caught.value.value, caught.value.limit, caught.value.remedy) == (7, 5, "send less")
        assert str(caught.value) == "the original has 7 bytes, the limit is 5; send less"
        empty = replace(EDIT, update="")
        with pytest.raises(EmptySnippetError):
            await text_work.run(TERMS, plan_edit, empty, max_file_bytes=1 << 20)
        assert len(text_work.process_ids) == 1, "an error that was foreseen ends no process"

    with_worker(scenario)


def test_work_that_is_killed_is_done_again_and_the_second_time_fails(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        first = await text_work.run(TERMS, text_jobs.process_id)
        second = await text_work.run(TERMS, text_jobs.die_once, tmp_path / "mark")
        assert second not in (first, os.getpid())
        with pytest.raises(TextWorkerError, match="send the edit again later"):
            await text_work.run(TERMS, text_jobs.die)
        third = await text_work.run(TERMS, text_jobs.process_id)
        os.kill(third, signal.SIGKILL)
        assert await text_work.run(TERMS, text_jobs.process_id) != third

    with_worker(scenario)


def test_a_mistake_fails_one_request_and_is_written_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(text_work: TextWork) -> None:
        with pytest.raises(TextWorkerError, match="its log has the details"):
            await text_work.run(TERMS, text_jobs.make_mistake)
        assert await text_work.run(TERMS, text_jobs.process_id)

    with_worker(scenario)
    assert "ZeroDivisionError: a mistake" in caplog.text


def test_a_cancelled_request_ends_its_work_and_what_waits_is_not_begun(tmp_path: Path) -> None:
    async def scenario(text_work: TextWork) -> None:
        busy = asyncio.create_task(text_work.run(TERMS, text_jobs.wait_after, tmp_path / "mark"))
        process_id = await until_begun(tmp_path / "mark")
        journal = tmp_path / "journal"
        waiting = asyncio.create_task(text_work.run(TERMS, text_jobs.note, "begun", journal))
        await asyncio.sleep(0)
        waiting.cancel()
        busy.cancel()
        ended = await asyncio.gather(waiting, busy, return_exceptions=True)
        assert [type(one) for one in ended] == [asyncio.CancelledError] * 2
        assert await text_work.run(TERMS, text_jobs.process_id) != process_id
        await until_ended({process_id})
        assert not journal.exists()

    with_worker(scenario)


def test_closing_ends_what_is_under_way_and_what_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        text_work = TextWork(num_workers=1)
        busy = asyncio.create_task(text_work.run(TERMS, text_jobs.wait_after, tmp_path / "mark"))
        waiting = asyncio.create_task(text_work.run(TERMS, text_jobs.process_id))
        process_id = await until_begun(tmp_path / "mark")
        await text_work.close()
        ended = await asyncio.gather(busy, waiting, return_exceptions=True)
        assert [type(one) for one in ended] == [ShuttingDownError] * 2
        assert not is_running(process_id)
        with pytest.raises(ShuttingDownError):
            await text_work.run(TERMS, text_jobs.process_id)

    asyncio.run(scenario())


def test_a_full_queue_refuses_the_owner_with_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_work_module, "MAX_WAITING", 4)
    many, few = (WorkTerms(started_at=0.0, owner=name) for name in ("many", "few"))

    async def scenario(text_work: TextWork) -> None:
        busy = asyncio.create_task(text_work.run(TERMS, text_jobs.wait_after, tmp_path / "mark"))
        process_id = await until_begun(tmp_path / "mark")
        waiting = [asyncio.create_task(text_work.run(many, text_jobs.process_id)) for _ in range(3)]
        await asyncio.sleep(0)
        text_work.check_ready()
        waiting.append(asyncio.create_task(text_work.run(many, text_jobs.process_id)))
        await asyncio.sleep(0)
        with pytest.raises(TextWorkStuckError, match=r"4 edits wait .* the limit is 4"):
            text_work.check_ready()
        with pytest.raises(BusyError, match="4 edits wait") as caught:
            text_work.check_room(many)
        assert caught.value.retry_after_s > 0
        text_work.check_room(few)
        with pytest.raises(BusyError):
            await waiting[-1]
        os.kill(process_id, signal.SIGKILL)
        await asyncio.gather(busy, *waiting[:-1])
        text_work.check_ready()

    with_worker(scenario)


def test_new_work_that_waits_for_long_is_no_readiness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_work_module, "MAX_WAIT_S", 0.0)

    async def scenario(text_work: TextWork) -> None:
        busy = asyncio.create_task(text_work.run(TERMS, text_jobs.wait_after, tmp_path / "mark"))
        process_id = await until_begun(tmp_path / "mark")
        text_work.check_ready()
        waiting = asyncio.create_task(text_work.run(TERMS, text_jobs.process_id))
        await asyncio.sleep(0)
        with pytest.raises(TextWorkStuckError, match="an edit has waited"):
            text_work.check_ready()
        os.kill(process_id, signal.SIGKILL)
        await asyncio.gather(busy, waiting)
        text_work.check_ready()

    with_worker(scenario)


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
