"""Runs many edits on one connection: reads lines, writes each answer when it is ready.

A line is under way from when it is read until its answer has been taken, and so many lines are at
once. Those that are worked on have together no more bytes than one line may have, so a batch of any
length holds the memory of a few edits. Its length and its time are bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from litestar.types import Receive

from apply_service.apply.errors import ApplyError, WithdrawnError
from apply_service.http.batch_lines import BatchLine, LineSplitter
from apply_service.http.problems import ProblemError, make_problem

# What is read ahead of the lines that are under way, so that a disconnect behind it is seen.
_MAX_BUFFERED_BYTES = 256 << 10
# How soon a batch that waits for lines notices that the server ends.
_CHECK_INTERVAL_S = 0.5


class BatchRun:
    """Reads a body by `receive` and answers each line by `answer`.

    What `answer` raises goes to `answer_failure`, so that there is one answer for every line. If
    that raises too, it is asked once more, about the new error and without the line's content.

    The last answer says why lines were not begun, by the number of the first one: `receive` raised
    a ProblemError or `check` an ApplyError while nothing was under way, or the batch is over one of
    its limits. What is under way after `max_batch_s` is given up and answered.
    """

    def __init__(
        self,
        receive: Receive,
        *,
        answer: Callable[[BatchLine], Awaitable[bytes]],
        answer_failure: Callable[[BatchLine, Exception], bytes],
        check: Callable[[], None],
        max_in_flight: int,
        max_line_bytes: int,
        max_lines: int,
        max_batch_s: float,
    ) -> None:
        self._receive = receive
        self._answer = answer
        self._answer_failure = answer_failure
        self._check = check
        self._lines: deque[BatchLine] = deque()
        self._splitter = LineSplitter(max_line_bytes=max_line_bytes)
        self._max_lines = max_lines
        self._max_batch_s = max_batch_s
        self._free = asyncio.Semaphore(max_in_flight)
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._num_buffered = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._workers: set[asyncio.Task[None]] = set()
        self._mistake: BaseException | None = None
        self._num_open = 0
        self._max_work_bytes = max_line_bytes
        self._num_work_bytes = 0
        self._has_finished = asyncio.Event()
        self._is_read = False
        self._is_abandoned = False
        self._is_over = False
        self._interruption: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The answers; leaving early, or a client that goes away, gives up what is under way."""
        tasks = [asyncio.create_task(self._receive_pieces()), asyncio.create_task(self._begin())]
        for task in tasks:
            task.add_done_callback(lambda _: self._answers.put_nowait(None))
        try:
            while not (self._is_read and not self._num_open):
                content = await self._answers.get()
                if self._is_abandoned:
                    return
                for task in tasks:
                    if task.done():
                        task.result()  # a mistake of ours must not become endless waiting
                if self._mistake is not None:
                    raise self._mistake
                if content is not None:
                    yield content
                    self._num_open -= 1
                    self._free.release()
        finally:
            self._is_over = True
            unfinished = [*tasks, *self._workers]
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    async def _receive_pieces(self) -> None:
        """Take the body as far as there is room, and then wait for the client to go away."""
        is_whole = False
        while True:
            await self._has_room.wait()
            try:
                message = await self._receive()
            except ProblemError as error:
                if self._num_open or self._num_buffered:
                    continue  # the client may be waiting for answers before it goes on
                self._interruption = error
                self._pieces.put_nowait(None)
                return
            if message["type"] != "http.request":  # it is a disconnect
                self._is_abandoned = True
                return
            if is_whole:
                continue
            self._num_buffered += len(message["body"])
            if self._num_buffered >= _MAX_BUFFERED_BYTES:
                self._has_room.clear()
            self._pieces.put_nowait(message["body"])
            if not message.get("more_body", False):
                is_whole = True
                self._pieces.put_nowait(None)

    async def _begin(self) -> None:
        """Begin all lines and wait for their ends, as far as the limits allow."""
        try:
            async with asyncio.timeout(self._max_batch_s):
                await self._begin_lines()
                self._is_read = self._interruption is None
                await self._wait_for_workers()
        except TimeoutError:
            self._interruption = _out_of_time(self._max_batch_s)
            for worker in self._workers:
                worker.cancel()
            await self._wait_for_workers()
        if not self._is_read:
            await self._end_early()

    async def _begin_lines(self) -> None:
        """Begin a line whenever one is there and fewer than the limit are under way."""
        while (piece := await self._next_piece()) is not None:
            self._lines += self._splitter.feed(piece)
            await self._begin_known_lines()
            self._num_buffered -= len(piece)
            if self._num_buffered < _MAX_BUFFERED_BYTES:
                self._has_room.set()
            num_lines = self._splitter.cut_off().number - 1
            if self._interruption is None and num_lines > self._max_lines:
                self._interruption = _too_many_lines(num_lines, self._max_lines)
            if self._interruption is not None:
                return
        if self._interruption is None:
            self._lines += self._splitter.end()
            await self._begin_known_lines()

    async def _next_piece(self) -> bytes | None:
        """More of the body; None behind its end, or if there is to be no more."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_INTERVAL_S):
                    return await self._pieces.get()
            try:
                if not self._num_open:
                    self._check()
            except ApplyError as error:
                self._interruption = error
                return None

    async def _begin_known_lines(self) -> None:
        while self._lines and self._lines[0].number <= self._max_lines:
            await self._wait_for_room(self._lines[0])
            await self._free.acquire()
            self._begin_line(self._lines.popleft())
        if self._lines:
            self._interruption = _too_many_lines(self._lines[0].number, self._max_lines)

    async def _wait_for_room(self, line: BatchLine) -> None:
        """Wait until a line fits beside those that are worked on, or is alone."""
        while self._workers and self._num_work_bytes + _kept_bytes(line) > self._max_work_bytes:
            self._has_finished.clear()
            await self._has_finished.wait()

    async def _wait_for_workers(self) -> None:
        if self._workers:
            await asyncio.wait(self._workers)

    async def _end_early(self) -> None:
        """Say why the next line is not begun, as the last answer."""
        assert self._interruption is not None, "only an interruption leaves lines unread"
        await self._free.acquire()
        self._num_open += 1
        line = self._lines[0] if self._lines else self._splitter.cut_off()
        self._answers.put_nowait(self._failure(line, self._interruption))
        self._is_read = True

    def _begin_line(self, line: BatchLine) -> None:
        self._num_open += 1
        self._num_work_bytes += _kept_bytes(line)
        worker = asyncio.create_task(self._work(line))
        self._workers.add(worker)
        worker.add_done_callback(partial(self._finish, line))

    async def _work(self, line: BatchLine) -> None:
        """Give the one answer to a line, whatever its work raises."""
        try:
            answer = await self._answer(line)
        except Exception as error:
            answer = self._failure(line, error)
        self._answers.put_nowait(answer)

    def _finish(self, line: BatchLine, worker: asyncio.Task[None]) -> None:
        """See that a worker's end is known, also where somebody else ended it."""
        self._workers.discard(worker)
        self._num_work_bytes -= _kept_bytes(line)
        self._has_finished.set()
        if self._is_over:
            return
        if worker.cancelled():
            gone = WithdrawnError(f"the work on line {line.number} was given up")
            self._answers.put_nowait(self._failure(line, self._interruption or gone))
        elif (mistake := worker.exception()) is not None:
            self._mistake = mistake
            self._answers.put_nowait(None)

    def _failure(self, line: BatchLine, error: Exception) -> bytes:
        try:
            return self._answer_failure(line, error)
        except Exception as further:
            return self._answer_failure(replace(line, content=None), further)


def _kept_bytes(line: BatchLine) -> int:
    """What a line holds; one over its limit holds nothing."""
    return 0 if line.content is None else line.num_bytes


def _too_many_lines(value: int, limit: int) -> ProblemError:
    return ProblemError(
        make_problem(
            413,
            code="batch-too-long",
            title="The batch has too many lines",
            detail=f"the batch has {value} lines or more, the limit is {limit}; this line and all"
            " later lines were not begun",
            value=value,
            limit=limit,
            remedy="send them in another batch, or raise max_batch_lines",
        )
    )


def _out_of_time(limit_s: float) -> ProblemError:
    return ProblemError(
        make_problem(
            504,
            code="batch-timed-out",
            title="The batch took too long",
            detail=f"the batch was not done after {limit_s:g} s; all lines without an earlier"
            " answer were given up or not begun",
            limit=limit_s,
            remedy="send them in another batch, or raise max_batch_s",
        )
    )
