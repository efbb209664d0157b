"""Many edits under way on one connection: lines in, answers out as they are ready.

A line is under way from when it is read until its answer has been taken, and so many lines are at
once, so a batch of any length holds the memory of a few edits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial

from litestar.types import Receive

from apply_service.batch_lines import BatchLine, LineSplitter
from apply_service.errors import WithdrawnError
from apply_service.problems import ProblemError

# What is read ahead of the lines that are under way, so that a disconnect behind it is seen.
_MAX_BUFFERED_BYTES = 256 << 10


class BatchRun:
    """Reads a body by `receive` and answers each line by `answer`.

    What `answer` raises goes to `answer_failure`, so that there is one answer for every line. If
    that raises too, it is asked once more, about the new error and without the line's content. If
    `receive` raises a ProblemError while nothing is under way, the line that did not come to its
    end gets it as the last answer.
    """

    def __init__(
        self,
        receive: Receive,
        *,
        answer: Callable[[BatchLine], Awaitable[bytes]],
        answer_failure: Callable[[BatchLine, Exception], bytes],
        max_in_flight: int,
        max_line_bytes: int,
    ) -> None:
        self._receive = receive
        self._answer = answer
        self._answer_failure = answer_failure
        self._splitter = LineSplitter(max_line_bytes=max_line_bytes)
        self._free = asyncio.Semaphore(max_in_flight)
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._num_buffered = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._workers: set[asyncio.Task[None]] = set()
        self._mistake: BaseException | None = None
        self._num_open = 0
        self._is_read = False
        self._is_abandoned = False
        self._is_over = False
        self._interruption: ProblemError | None = None

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
        """Begin a line whenever one is there and fewer than the limit are under way."""
        while (piece := await self._pieces.get()) is not None:
            for line in self._splitter.feed(piece):
                await self._begin_line(line)
            self._num_buffered -= len(piece)
            if self._num_buffered < _MAX_BUFFERED_BYTES:
                self._has_room.set()
        if self._interruption is not None:
            await self._free.acquire()
            self._num_open += 1
            line = self._splitter.cut_off()
            self._answers.put_nowait(self._failure(line, self._interruption))
        else:
            for line in self._splitter.end():
                await self._begin_line(line)
        self._is_read = True

    async def _begin_line(self, line: BatchLine) -> None:
        await self._free.acquire()
        self._num_open += 1
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
        if self._is_over:
            return
        if worker.cancelled():
            gone = WithdrawnError(f"the work on line {line.number} was given up")
            self._answers.put_nowait(self._failure(line, gone))
        elif (mistake := worker.exception()) is not None:
            self._mistake = mistake
            self._answers.put_nowait(None)

    def _failure(self, line: BatchLine, error: Exception) -> bytes:
        try:
            return self._answer_failure(line, error)
        except Exception as further:
            return self._answer_failure(replace(line, content=None), further)
