"""Many edits under way on one connection: lines in, answers out as they are ready.

A line is under way from when it is read until its answer has been taken, and so many lines are at
once, so a batch of any length holds the memory of a few edits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from litestar.types import Receive

from apply_service.batch_lines import BatchLine, LineSplitter
from apply_service.problems import ProblemError

# What is read ahead of the lines that are under way, so that a disconnect behind it is seen.
_MAX_BUFFERED_BYTES = 256 << 10


class BatchRun:
    """Reads a body by `receive` and answers each line by `answer`.

    What `answer` raises goes to `answer_failure`, so that there is one answer for every line. If
    `receive` raises a ProblemError while nothing is under way, the line that did not come to its
    end gets it as the last answer.
    """

    def __init__(
        self,
        receive: Receive,
        *,
        answer: Callable[[BatchLine], Awaitable[bytes]],
        answer_failure: Callable[[BatchLine, BaseException], bytes],
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
        self._workers: set[asyncio.Task[bytes]] = set()
        self._num_open = 0
        self._is_read = False
        self._is_abandoned = False
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
                if content is not None:
                    yield content
                    self._num_open -= 1
                    self._free.release()
        finally:
            unfinished: list[asyncio.Future[Any]] = [*tasks, *self._workers]
            for future in unfinished:
                future.cancel()
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
            self._answers.put_nowait(self._answer_failure(line, self._interruption))
        else:
            for line in self._splitter.end():
                await self._begin_line(line)
        self._is_read = True

    async def _begin_line(self, line: BatchLine) -> None:
        await self._free.acquire()
        self._num_open += 1
        worker = asyncio.ensure_future(self._answer(line))
        self._workers.add(worker)
        worker.add_done_callback(partial(self._finish, line))

    def _finish(self, line: BatchLine, worker: asyncio.Future[bytes]) -> None:
        self._workers.discard(worker)
        if worker.cancelled():
            return
        error = worker.exception()
        answer = worker.result() if error is None else self._answer_failure(line, error)
        self._answers.put_nowait(answer)
