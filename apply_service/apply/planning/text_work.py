"""Does the text work of edits in a few processes that can be killed at any moment."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar, cast

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import (
    BusyError,
    ShuttingDownError,
    TextWorkerError,
    TextWorkStuckError,
)
from apply_service.apply.planning.fair_queue import FairQueue
from apply_service.apply.planning.text_worker import (
    MistakeError,
    TextJob,
    TextWorker,
    WorkKilledError,
)
from apply_service.http.guard.keys.caller import current_caller
from batching.errors import DeadlineExceededError
from batching.request import Priority

_LOGGER = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

# More than any edit takes that is not refused for its number of comparisons.
MAX_WORK_S = 60.0
# Jobs that wait for a process; more would not be begun before their deadline.
MAX_WAITING = 256
# A usual edit computes for a fifth of this. Of what needs more, little goes on at once.
LONG_WORK_S = 0.25
# Shorter work goes first: what has computed for a while, or will by its size, is nicer.
_NICENESS_OF_LONG_WORK = 6
_LARGE_CHARACTERS = 100_000
_LOOK_S = 0.05
# Small edits overtake large ones that wait: a megabyte lets five seconds of others go first.
_WAIT_S_PER_CHARACTER = 5e-6
# So many processes for each one that may go on with long work while other work waits.
_PROCESSES_PER_LONG_WORK = 4
# A server on which new work waits longer than this before it is begun is not ready.
MAX_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTerms:
    """The owner, start, deadline (by `time.monotonic`) and priority of some work."""

    started_at: float
    owner: str | None = None
    deadline: float | None = None
    num_characters: int = 0
    is_batch: bool = False

    @classmethod
    def of(cls, edit: EditRequest, *, started_at: float) -> Self:
        """The terms of an edit that came at `started_at` in the current request."""
        return cls(
            started_at=started_at,
            owner=_owner(),
            deadline=None if edit.deadline_s is None else started_at + edit.deadline_s,
            num_characters=edit.num_characters,
            is_batch=edit.priority == Priority.BATCH,
        )

    @classmethod
    def of_text(cls, num_characters: int, *, deadline_s: float) -> Self:
        """The terms of a text that begins to be read now, in the current request."""
        now = time.monotonic()
        return cls(
            started_at=now,
            owner=_owner(),
            deadline=now + deadline_s,
            num_characters=num_characters,
        )

    @property
    def is_large(self) -> bool:
        """True if the work will probably take long."""
        return self.num_characters >= _LARGE_CHARACTERS


class _Job(TextJob):
    """A job and its waiting caller; used on the event loop, except the parts for a worker."""

    def __init__(self, terms: WorkTerms, call: Call) -> None:
        super().__init__(*call)
        self.terms = terms
        self.is_long = terms.is_large and not terms.is_batch
        self.niceness = _NICENESS_OF_LONG_WORK if terms.is_large else 0
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.queued_at = time.monotonic()
        self.rank = self.queued_at + terms.num_characters * _WAIT_S_PER_CHARACTER
        self.seat: _Seat | None = None


@dataclass(eq=False, slots=True)
class _Seat:
    """A process with its current job, the job's start, and the seconds it had computed before."""

    worker: TextWorker
    job: _Job | None = None
    started_at: float = 0.0
    used_s: float = 0.0
    is_paused: bool = False
    timer: asyncio.TimerHandle | None = None
    limit: asyncio.TimerHandle | None = None


class TextWork:
    """Runs functions over edits beside the event loop, each until its deadline and no longer.

    Owners take turns; of one owner's edits, small ones overtake large ones. A quarter of the
    processes (one at least) do the work of large edits and work that has turned out to be long, at
    a lower priority; of the latter the excess pauses. Where new work finds no process free, the
    last paused job is stopped and begun again when there is room; then a larger edit of the
    same owner, or one of an owner who has more processes, waits again. Of work in batch priority
    one job is done at a time.

    Without processes everything is done in threads, which go on unheard after the deadline.
    """

    def __init__(self, *, num_workers: int = 0) -> None:
        self._num_workers = num_workers
        self._max_long = max(1, num_workers // _PROCESSES_PER_LONG_WORK)
        self._seats = [_Seat(TextWorker()) for _ in range(num_workers)]
        # The seat used last comes first, so that no more processes are started than are needed.
        self._idle = list(reversed(self._seats))
        # Seats whose work is long, in the order in which it turned out to be.
        self._long: list[_Seat] = []
        self._new, self._batch, self._slow = (FairQueue(_rank_of) for _ in range(3))
        self._queues = (self._new, self._batch, self._slow)
        self._threads = (
            ThreadPoolExecutor(num_workers, thread_name_prefix="text-work") if num_workers else None
        )
        self._num_characters = 0
        self._last_work_s = LONG_WORK_S
        self._start_error: BaseException | None = None
        self._is_closed = False

    @property
    def process_ids(self) -> list[int]:
        """The ids of the processes that were started and are not known to have ended."""
        ids = [seat.worker.process_id for seat in self._seats]
        return [process_id for process_id in ids if process_id is not None]

    @property
    def num_characters(self) -> int:
        """Characters of the edits whose text is waiting or being worked on."""
        return self._num_characters

    def start(self) -> None:
        """Start the first process, so that no edit has to wait for it; on the event loop."""
        if self._idle:
            self._refresh(self._idle.pop())

    def check_room(self, terms: WorkTerms) -> None:
        """Raise BusyError if a new edit would have to wait behind too many.

        If another owner has more edits waiting, the last one of that owner is dropped instead.
        """
        queue = self._queue_of(terms)
        num_waiting = len(queue)
        if num_waiting < MAX_WAITING:
            return
        error = BusyError(
            f"{num_waiting} edits wait for their text to be read, the limit is {MAX_WAITING};"
            " send the edit again later",
            retry_after_s=round(num_waiting * self._last_work_s / self._num_workers, 3),
        )
        last = queue.last_of_most()
        if queue.num_of(last.terms.owner) <= queue.num_of(terms.owner) + 1:
            raise error
        self._withdraw(last)
        last.answer.set_exception(error)

    def check_ready(self) -> None:
        """Raise TextWorkStuckError if a new edit would be refused, or would not begin for long."""
        if self._start_error is not None:
            self.start()
            raise TextWorkStuckError(
                f"no process for text work can be started: {self._start_error}"
            )
        if len(self._new) >= MAX_WAITING:
            raise TextWorkStuckError(
                f"{len(self._new)} edits wait for their text to be read, the limit is {MAX_WAITING}"
            )
        now = time.monotonic()
        waited_s = max((now - job.queued_at for job in self._new.first_ones()), default=0.0)
        if waited_s > MAX_WAIT_S:
            raise TextWorkStuckError(
                f"an edit has waited {waited_s:.1f} s for its text to be read, the limit is"
                f" {MAX_WAIT_S:g} s"
            )

    async def run(
        self, terms: WorkTerms, work: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """The result of `work`, a function of a module, for these arguments.

        Raises the errors of `work`; DeadlineExceededError at the deadline of `terms`,
        TextWorkerError if its process fails or it takes too long, ShuttingDownError after the end.
        At the deadline, or if the caller is cancelled, work that has begun is killed.
        """
        return cast(T, await _in_time(terms, self._do(terms, (work, args, options))))

    async def run_here(
        self, terms: WorkTerms, work: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Do as `run` does, in a thread of this process, for work that no other process can do.

        After its deadline the work goes on unheard.
        """
        return await _in_time(terms, asyncio.to_thread(work, *args, **options))

    async def close(self) -> None:
        """End the processes; waiting and running jobs fail with ShuttingDownError."""
        self._is_closed = True
        waiting = [job for queue in self._queues for job in queue.take_all()]
        running = [seat.job for seat in self._seats if seat.job is not None]
        for job in (*waiting, *running):
            if not job.answer.done():
                job.answer.set_exception(_shutting_down())
            self._withdraw(job)
        if self._threads is not None:
            await asyncio.to_thread(self._threads.shutdown)
        for seat in self._seats:
            seat.worker.end()

    async def _do(self, terms: WorkTerms, call: Call) -> Any:
        if self._threads is None:
            work, args, options = call
            return await asyncio.to_thread(work, *args, **options)
        if self._is_closed:
            raise _shutting_down()
        job = _Job(terms, call)
        self._num_characters += terms.num_characters
        self._queue_of(terms).push(terms.owner, job)
        self._fill_seats()
        try:
            return await job.answer
        finally:
            self._num_characters -= terms.num_characters
            self._withdraw(job)

    def _queue_of(self, terms: WorkTerms) -> FairQueue[_Job]:
        if terms.is_batch:
            return self._batch
        return self._slow if terms.is_large else self._new

    def _withdraw(self, job: _Job) -> None:
        """Stop a job; nothing happens if it has ended."""
        if job.seat is not None:
            job.is_killed = True
            job.seat.worker.kill()
        for queue in self._queues:
            queue.discard(job.terms.owner, job)

    def _fill_seats(self) -> None:
        """Start the jobs that may start; where new work finds no process free, stop long work."""
        while self._idle and (job := self._try_next()) is not None:
            self._begin(self._idle.pop(), job)
        running = [seat.job for seat in self._seats if seat.job is not None]
        going_on = [job for job in running if not job.is_killed]
        if len(going_on) < len(running):
            return  # the end of a job fills its seat and looks again
        victim = None
        if self._new and len(running) == self._num_workers:
            victim = self._try_victim(running)
        elif self._slow:
            victim = self._try_long_victim()
        if victim is not None:
            self._withdraw(victim)

    def _try_victim(self, running: list[_Job]) -> _Job | None:
        """The job to stop for the new one that waits, or None."""
        long = [seat.job for seat in self._long[self._max_long :]]
        if long:
            return long[-1]
        num_held = self._num_held(self._seats)
        waiting = self._new.peek(num_held)
        owner = waiting.terms.owner
        candidates = [
            job
            for job in running
            if num_held[job.terms.owner] > num_held[owner] + 1
            or (job.terms.owner == owner and job.rank > waiting.rank)
        ]
        return max(candidates, key=_rank_of, default=None)

    def _try_long_victim(self) -> _Job | None:
        """The long job to stop for one of an owner who has less long work, or None."""
        num_held = self._num_held(self._long)
        num_fair = num_held[self._slow.peek(num_held).terms.owner] + 1
        jobs = (seat.job for seat in reversed(self._long))
        return next((job for job in jobs if job and num_held[job.terms.owner] > num_fair), None)

    def _try_next(self) -> _Job | None:
        """Take the next job to start out of its queue."""
        num_held, num_long = self._num_held(self._seats), self._num_held(self._long)
        if self._slow and len(self._long) < self._max_long:
            slow = self._slow.peek(num_long)
            if not self._new or slow.rank < self._new.peek(num_held).rank:
                return self._slow.pop(num_long)
        if self._new:
            return self._new.pop(num_held)
        jobs = (seat.job for seat in self._seats)
        if self._batch and not any(job is not None and job.terms.is_batch for job in jobs):
            return self._batch.pop(num_held)
        return None

    def _num_held(self, seats: list[_Seat]) -> Counter[Hashable]:
        """Number of these seats that each owner has."""
        return Counter(seat.job.terms.owner for seat in seats if seat.job is not None)

    def _begin(self, seat: _Seat, job: _Job) -> None:
        seat.job, job.seat = job, seat
        seat.started_at = time.monotonic()
        seat.used_s = seat.worker.processor_seconds()
        loop = asyncio.get_running_loop()
        seat.limit = loop.call_later(MAX_WORK_S, self._give_up, job)
        if job.is_long:
            self._long.append(seat)
        else:
            seat.timer = loop.call_later(_LOOK_S, self._look_at, seat)
        running = loop.run_in_executor(self._threads, seat.worker.run, job)
        running.add_done_callback(partial(self._end, seat, job))

    def _look_at(self, seat: _Seat) -> None:
        """Note how long the job of a seat has computed; waiting does not count."""
        if seat.worker.processor_seconds() - seat.used_s < LONG_WORK_S:
            seat.timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look_at, seat)
            return
        self._long.append(seat)
        seat.worker.give_way(_NICENESS_OF_LONG_WORK)
        if len(self._long) > self._max_long:
            seat.is_paused = True
            seat.worker.pause()
        self._fill_seats()

    def _give_up(self, job: _Job) -> None:
        if not job.answer.done():
            job.answer.set_exception(
                TextWorkerError(
                    f"the work on the text took longer than {MAX_WORK_S:g} s and was ended; send a"
                    " smaller file or update"
                )
            )
        self._withdraw(job)

    def _end(self, seat: _Seat, job: _Job, done: asyncio.Future[Any]) -> None:
        """Deliver the result of a job, or queue a job again that was stopped for others."""
        seat.job = job.seat = None
        for timer in (seat.timer, seat.limit):
            if timer is not None:
                timer.cancel()
        was_long = seat in self._long
        if was_long:
            self._long.remove(seat)
        for other in (seat, *self._long[: self._max_long]):
            if other.is_paused:
                other.is_paused = False
                other.worker.resume()
        self._last_work_s = time.monotonic() - seat.started_at
        error = done.exception()
        if isinstance(error, MistakeError):
            _LOGGER.error("text work failed: %s", error.traceback)
        if not job.answer.done():
            if isinstance(error, WorkKilledError):
                job.is_killed = False
                if was_long:
                    job.is_long, job.niceness = True, _NICENESS_OF_LONG_WORK
                queue = self._slow if was_long else self._queue_of(job.terms)
                queue.push(job.terms.owner, job)
            elif error is not None:
                job.answer.set_exception(error)
            else:
                job.answer.set_result(done.result())
        self._refresh(seat)

    def _refresh(self, seat: _Seat) -> None:
        """Give a seat a process if it has none; then it is idle, and filled."""
        if self._is_closed:
            return
        if seat.worker.process_id is not None:
            self._free(seat)
            return
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(self._threads, seat.worker.start)
        starting.add_done_callback(partial(self._note_start, seat))

    def _note_start(self, seat: _Seat, done: asyncio.Future[None]) -> None:
        error = done.exception()
        self._start_error = error
        if error is not None:
            _LOGGER.error("no process for text work can be started: %s", error)
        self._free(seat)

    def _free(self, seat: _Seat) -> None:
        self._idle.append(seat)
        if not self._is_closed:
            self._fill_seats()


async def _in_time(terms: WorkTerms, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work` if it is there in time; otherwise `work` is cancelled."""
    left_s = None if terms.deadline is None else terms.deadline - time.monotonic()
    try:
        async with asyncio.timeout(left_s) as timeout:
            return await work
    except TimeoutError:
        if not timeout.expired():
            raise
    raise DeadlineExceededError(
        "the deadline passed during the work on the text of the edit; send a smaller file or"
        " update, or raise deadline_s"
    )


def _owner() -> str | None:
    """Who has sent the current request."""
    caller = current_caller()
    return None if caller is None else caller.name


def _rank_of(job: _Job) -> float:
    return job.rank


def _shutting_down() -> ShuttingDownError:
    return ShuttingDownError("the server is shutting down and does not finish the edit")
