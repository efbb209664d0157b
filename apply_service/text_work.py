"""Where the text side of edits is done: small files in threads, large ones in processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import LifoQueue
from typing import ParamSpec, TypeVar

from apply_service.edit_request import EditRequest
from apply_service.errors import BusyError, ShuttingDownError, TextWorkerError
from apply_service.text_worker import TextWorker

P = ParamSpec("P")
T = TypeVar("T")

# Planning the largest file of the default limits takes a second or two on a slow machine.
MAX_WORK_S = 60.0
# Large files that wait for each process; more would not be planned before their deadline.
MAX_WAITING_PER_WORKER = 16


class TextWork:
    """Does functions over edits beside the event loop, by the size of the edit.

    A thread takes time from all others of the server, which a large file makes felt; a process
    costs the copying of file and plan. Without workers everything is done in threads.
    """

    def __init__(self, *, num_workers: int = 0, large_file_bytes: int = 0) -> None:
        """Originals with updates of `large_file_bytes` characters or more go to a process."""
        self._large_file_bytes = large_file_bytes
        self._num_workers = num_workers
        self._workers = [TextWorker(max_work_s=MAX_WORK_S) for _ in range(num_workers)]
        # The worker used last comes first, so that another is started only when both are needed.
        self._idle: LifoQueue[TextWorker] = LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        # One thread for each worker: its queue is the queue of the workers.
        self._threads = (
            ThreadPoolExecutor(num_workers, thread_name_prefix="text-work") if num_workers else None
        )
        self._num_pending = 0
        self._last_work_s = 1.0
        self._is_closed = False

    @property
    def process_ids(self) -> list[int]:
        """The processes that were started and have not ended as far as is known."""
        ids = [worker.process_id for worker in self._workers]
        return [process_id for process_id in ids if process_id is not None]

    def check_room(self, edit: EditRequest) -> None:
        """Raise BusyError if an edit would have to wait behind too many large ones."""
        limit = MAX_WAITING_PER_WORKER * self._num_workers
        if self._is_large(edit) and self._num_pending >= limit:
            raise BusyError(
                f"{self._num_pending} large files wait to be planned, the limit is {limit}; send"
                " the edit again later",
                retry_after_s=round(self._num_pending * self._last_work_s / self._num_workers, 3),
            )

    async def run(
        self, edit: EditRequest, work: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """What `work`, a function of a module, gives for these arguments.

        Raises what it raises; TextWorkerError if its process fails, ShuttingDownError after the
        end. Cancelling the caller withdraws work that has not begun.
        """
        if self._threads is None or not self._is_large(edit):
            return await asyncio.to_thread(work, *args, **options)
        if self._is_closed:
            raise _shutting_down()
        self._num_pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, partial(self._run_in_worker, work, *args, **options)
            )
        finally:
            self._num_pending -= 1

    async def close(self) -> None:
        """End the processes; what waits or is under way fails with ShuttingDownError."""
        self._is_closed = True
        for worker in self._workers:
            worker.kill()
        if self._threads is not None:
            await asyncio.to_thread(self._threads.shutdown)
        for worker in self._workers:
            worker.close()

    def _is_large(self, edit: EditRequest) -> bool:
        if self._threads is None:
            return False
        return edit.num_characters >= self._large_file_bytes

    def _run_in_worker(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """In one of our threads, of which there are as many as workers."""
        worker = self._idle.get_nowait()
        started_at = time.monotonic()
        try:
            return worker.run(work, *args, **options)
        except TextWorkerError:
            if self._is_closed:
                raise _shutting_down() from None
            raise
        finally:
            self._last_work_s = time.monotonic() - started_at
            self._idle.put(worker)


def _shutting_down() -> ShuttingDownError:
    return ShuttingDownError("the server is shutting down and does not go on with the file")
