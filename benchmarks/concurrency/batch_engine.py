"""A started engine that serves whole batches of requests and times them, without asyncio."""

from __future__ import annotations

import gc
import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from apply_service.apply.errors import ApplyError
from batching.engine import Engine
from batching.events import Cancelled, Event, Failed, Finished, RequestStats, Tokens
from batching.request import EngineRequest


class BatchFailedError(ApplyError):
    """The engine gave up on a request of a batch, so the batch has no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBatchRun:
    """A batch from the first submission to the last token of all.

    `token_ids` are the answers in the order of the requests; `num_steps` counts forward passes.
    """

    token_ids: tuple[tuple[int, ...], ...]
    seconds: float
    stats: RequestStats
    num_steps: int

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens a second of all requests together."""
        return sum(map(len, self.token_ids)) / self.seconds


class BatchEngine:
    """Runs one batch at a time on an engine of its own; to be used as a context."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        gc.collect()
        gc.freeze()  # what is there already need not be searched again before each batch
        self._engine.start(self._events.put)
        return self

    def __exit__(self, *_error: object) -> None:
        self._engine.stop()
        gc.unfreeze()

    def run(
        self, make_requests: Sequence[Callable[[], EngineRequest]], *, at_once: int | None = None
    ) -> EngineBatchRun:
        """Make and submit all requests, then wait for the last of them.

        With `at_once` no more than so many are under way; for each that ends the next one comes.
        Making a request counts: what drafting needs is prepared there. Raises BatchFailedError.
        """
        gc.collect()  # what an earlier batch left behind is not this one's to clear away
        steps_before = self._engine.stats().steps
        started = time.perf_counter()
        answers: dict[str, list[int]] = {}
        stats: list[RequestStats] = []
        waiting = deque(make_requests)
        while waiting or len(stats) < len(answers):
            while waiting and (at_once is None or len(answers) - len(stats) < at_once):
                request = waiting.popleft()()
                answers[request.request_id] = []
                self._engine.submit(request)
            event = self._events.get()
            if isinstance(event, Tokens):
                answers[event.request_id] += event.token_ids
            elif isinstance(event, Finished):
                stats.append(event.stats)
            else:
                raise BatchFailedError(_describe(event))
        seconds = time.perf_counter() - started
        return EngineBatchRun(
            token_ids=tuple(tuple(token_ids) for token_ids in answers.values()),
            seconds=seconds,
            stats=RequestStats.total(stats),
            num_steps=self._engine.stats().steps - steps_before,
        )


def _describe(event: Failed | Cancelled) -> str:
    reason = event.error if isinstance(event, Failed) else "it was cancelled"
    return f"the engine gave up on request {event.request_id}: {reason}"
