"""Admits requests to one engine, or says when to come back."""

from __future__ import annotations

import time
from collections.abc import Sequence

from apply_service.apply.errors import BusyError, OverloadedError
from apply_service.apply.queue_estimate import MAX_WAIT_S, QueueEstimate
from apply_service.apply.speed_estimate import SpeedEstimate
from batching.async_engine import AsyncEngine, RequestHandle
from batching.errors import EngineError, QueueFullError
from batching.events import RequestStats
from batching.request import EngineRequest


class Admission:
    """Submits requests to an engine unless the requests before them would probably make them late.

    Estimates come from the requests that `observe` was told of. Requests with none before them are
    always let in, and so are requests that would be late even alone: their durations correct the
    estimates.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._speed = SpeedEstimate()
        self._queue = QueueEstimate()

    def observe(self, stats: RequestStats) -> None:
        """Record the figures of a finished request."""
        self._speed.observe(stats)
        self._queue.observe(stats)

    def submit(
        self, requests: Sequence[EngineRequest], *, num_answer_tokens: int = 0
    ) -> tuple[RequestHandle, ...]:
        """Submit all of the requests or, if the engine refuses one, none.

        They have one deadline and one priority, and answers of together about so many tokens.
        Raises OverloadedError, BusyError or another EngineError.
        """
        self._check_time(requests, num_answer_tokens)
        handles: list[RequestHandle] = []
        try:
            for request in requests:
                handles.append(self._engine.submit(request))
        except EngineError as error:
            for handle in handles:
                handle.cancel()
            if isinstance(error, QueueFullError):
                wait_s = self._queue.wait_s(self._engine.stats())
                raise BusyError(str(error), retry_after_s=round(wait_s, 3)) from error
            raise
        return tuple(handles)

    def _check_time(self, requests: Sequence[EngineRequest], num_answer_tokens: int) -> None:
        deadline, priority = requests[0].deadline, requests[0].priority
        if deadline is None:
            return
        ahead_s = self._queue.ahead_s(self._engine.stats(), priority=priority)
        if not ahead_s:
            return
        left_s = deadline - time.monotonic()
        own_s = self._speed.seconds(
            num_prompt_tokens=sum(len(request.prompt_token_ids) for request in requests),
            num_answer_tokens=num_answer_tokens,
        )
        late_s = ahead_s - left_s
        if own_s is not None and own_s <= left_s:
            late_s += own_s
        if late_s > 0:
            raise OverloadedError(
                f"the requests before this one take about {ahead_s:.1f} s, and this one has"
                f" {max(left_s, 0):.1f} s left; send it again after `Retry-After`",
                retry_after_s=round(min(MAX_WAIT_S, late_s), 3),
            )
