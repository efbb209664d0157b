"""A batch's run without a network: how much it reads, what it answers, when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest

from apply_service.http.batch_lines import BatchLine
from apply_service.http.batch_run import BatchRun
from apply_service.http.problems import ProblemError, make_problem

MAX_IN_FLIGHT = 3
LINE = b"x" * 1023 + b"\n"


class Caller:
    """Sends lines without end and answers each when it is told to."""

    def __init__(self, pieces: Sequence[bytes] = ()) -> None:
        self.pieces = list(pieces)
        self.has_end = bool(pieces)
        self.is_late = False
        self.endless_piece = LINE
        self.remedies: list[bytes] = []
        self.num_received = 0
        self.num_begun = 0
        self.num_cancelled = 0
        self.may_answer = asyncio.Event()
        self.is_gone = asyncio.Event()

    async def receive(self) -> Any:
        await asyncio.sleep(0)
        if self.is_late and not self.pieces:
            raise ProblemError(make_problem(408, code="late", title="Late", detail="it is late"))
        if self.is_gone.is_set() or (self.has_end and not self.pieces):
            await self.is_gone.wait()
            return {"type": "http.disconnect"}
        self.num_received += 1
        piece = self.pieces.pop(0) if self.has_end else self.endless_piece
        return {
            "type": "http.request",
            "body": piece,
            "more_body": not self.has_end or self.is_late or bool(self.pieces),
        }

    async def answer(self, line: BatchLine) -> bytes:
        self.num_begun += 1
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
        if line.content in (b"bad", b"worse"):
            raise ValueError("bad")
        if line.content == b"given up":
            raise asyncio.CancelledError
        return b"%d" % line.number

    def answer_failure(self, line: BatchLine, error: Exception) -> bytes:
        if line.content == b"worse":
            raise RecursionError("worse")
        if isinstance(error, ProblemError):
            self.remedies.append((error.problem.remedy or "").encode())
        return b"%d %s" % (line.number, str(error).encode())

    def run(self, *, max_lines: int = 1 << 40, max_s: float = 1e6) -> AsyncGenerator[bytes]:
        run = BatchRun(
            self.receive,
            answer=self.answer,
            answer_failure=self.answer_failure,
            check=lambda: None,
            max_in_flight=MAX_IN_FLIGHT,
            max_line_bytes=5000,
            max_lines=max_lines,
            max_batch_s=max_s,
        )
        return cast(AsyncGenerator[bytes], aiter(run))


async def settled() -> None:
    """Everything that can go on without an event has gone on."""
    for _ in range(2000):
        await asyncio.sleep(0)


async def reading_is_bounded() -> None:
    caller = Caller()
    answers = caller.run()
    first = asyncio.ensure_future(anext(answers))
    await settled()
    assert caller.num_begun == MAX_IN_FLIGHT
    assert caller.num_received <= 256 + MAX_IN_FLIGHT + 1, "a quarter of a MiB is read ahead"
    caller.may_answer.set()
    assert await first == b"1"
    await settled()
    assert caller.num_begun == MAX_IN_FLIGHT, "an answer that is being sent is still under way"
    for _ in range(10):
        await anext(answers)
        await settled()
    assert caller.num_begun == MAX_IN_FLIGHT + 10
    await answers.aclose()


async def large_lines_wait_for_each_other() -> None:
    """Of lines that are nearly as long as they may be one is worked on at a time."""
    caller = Caller([b"x" * 4000 + b"\n", b"y" * 4000 + b"\n", b"z" * 9000 + b"\n", b"a\nb\n"])
    answers = caller.run()
    first = asyncio.ensure_future(anext(answers))
    await settled()
    assert caller.num_begun == 1
    caller.may_answer.set()
    assert sorted([await first, *[one async for one in answers]]) == [b"1", b"2", b"3", b"4", b"5"]


async def every_line_is_answered() -> None:
    caller = Caller([b"a\nb", b"ad\nb", b"ad\n\nc"])
    caller.may_answer.set()
    assert sorted([answer async for answer in caller.run()]) == [b"1", b"2 bad", b"3 bad", b"5"]


async def no_exception_of_a_line_harms_the_others() -> None:
    caller = Caller([b"worse\na\ngiven up\nworse\nworse\nb\n"])
    caller.may_answer.set()
    answers = sorted([answer async for answer in caller.run()])
    given_up = b"3 the work on line 3 was given up"
    assert answers == [b"1 worse", b"2", given_up, b"4 worse", b"5 worse", b"6"]


async def a_batch_has_no_more_lines_than_it_may() -> None:
    caller = Caller([b"a\n\nc\n", b"d\ne\nf\n"])
    caller.may_answer.set()
    *answers, last = [answer async for answer in caller.run(max_lines=4)]
    assert sorted(answers) == [b"1", b"3", b"4"]
    assert last.startswith(b"5 the batch has 5 lines or more, the limit is 4")
    assert b"max_batch_lines" in caller.remedies[-1]
    fitting = Caller([b"a\n\nc\nd\n"])
    fitting.may_answer.set()
    assert sorted([answer async for answer in fitting.run(max_lines=4)]) == [b"1", b"3", b"4"]


async def blank_lines_count_too() -> None:
    caller = Caller()
    caller.endless_piece = b"\n" * 1000
    (last,) = [answer async for answer in caller.run(max_lines=5000)]
    assert b" the limit is 5000;" in last
    assert caller.num_received <= 10, "what comes behind the limit is not waited for"


async def a_batch_ends_in_time() -> None:
    caller = Caller([b"a\nb\nc\nd\ne\n"])
    answers = [answer async for answer in caller.run(max_s=0.01)]
    assert (caller.num_begun, caller.num_cancelled) == (MAX_IN_FLIGHT, MAX_IN_FLIGHT)
    assert sorted(answer[:2] for answer in answers) == [b"1 ", b"2 ", b"3 ", b"4 "]
    assert answers[-1].startswith(b"4 "), "the first line that was not begun"
    assert all(b"not done after 0.01 s" in answer for answer in answers)
    assert b"max_batch_s" in caller.remedies[-1]


async def lines_that_are_all_under_way_end_in_time() -> None:
    caller = Caller([b"a\nb"])
    answers = [answer async for answer in caller.run(max_s=0.01)]
    assert sorted(answer[:2] for answer in answers) == [b"1 ", b"2 "]


async def a_client_that_goes_takes_all_along() -> None:
    caller = Caller([b"a\nb\nc\nd\ne\nf\n"])
    answers = caller.run()
    first = asyncio.ensure_future(anext(answers))
    await settled()
    caller.is_gone.set()
    with pytest.raises(StopAsyncIteration):
        await first
    assert (caller.num_begun, caller.num_cancelled) == (MAX_IN_FLIGHT, MAX_IN_FLIGHT)


async def leaving_early_gives_up() -> None:
    caller = Caller([b"a\nb\nc\nd\n"])
    answers = caller.run()
    first = asyncio.ensure_future(anext(answers))
    await settled()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await answers.aclose()
    assert caller.num_cancelled == MAX_IN_FLIGHT
    assert len(asyncio.all_tasks()) == 1


async def a_body_that_does_not_come_is_said_last() -> None:
    caller = Caller([b"a\nb\nc"])
    caller.is_late = True
    answers = caller.run()
    first = asyncio.ensure_future(anext(answers))
    await settled()
    assert caller.num_cancelled == 0, "the client may wait for answers"
    caller.may_answer.set()
    assert [await first, *[answer async for answer in answers]] == [b"1", b"2", b"3 it is late"]


@pytest.mark.parametrize(
    "scenario",
    [
        reading_is_bounded,
        every_line_is_answered,
        large_lines_wait_for_each_other,
        no_exception_of_a_line_harms_the_others,
        a_batch_has_no_more_lines_than_it_may,
        blank_lines_count_too,
        a_batch_ends_in_time,
        lines_that_are_all_under_way_end_in_time,
        a_client_that_goes_takes_all_along,
        leaving_early_gives_up,
        a_body_that_does_not_come_is_said_last,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_runs(scenario: Any) -> None:
    asyncio.run(scenario())
