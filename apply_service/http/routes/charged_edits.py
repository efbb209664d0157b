"""Runs the edits of one request, each charged to its caller as a request of its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, nullcontext

from apply_service.apply.events import RunEvent
from apply_service.apply.outcome import Outcome
from apply_service.http.guard.limits.allowance import Cost, current_allowance
from apply_service.http.routes.edit_run import edit_result, run_body
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.service import ApplyService
from batching.errors import QueueFullError

# How soon and how late an edit that found the queue full tries again.
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 2.0
# What an edit is expected to cost until that is known; code has some more in a token.
_BYTES_PER_TOKEN = 4


class ChargedEdits:
    """Runs edits in the name of the owner of the current request; `sent_key` is the key."""

    def __init__(self, service: ApplyService, sent_key: str | None) -> None:
        self._service = service
        self._sent_key = sent_key
        self._allowance = current_allowance()

    @property
    def max_concurrent(self) -> int | None:
        """How many requests at the same time the caller may have, None for any number."""
        return None if self._allowance is None else self._allowance.max_concurrent

    async def run(self, body: ApplyBody, *, num_bytes: int, until: float) -> ApplyResult:
        """The result of an edit, which waits for room until a time of `time.monotonic`.

        Raises one of FORESEEN_ERRORS; 429 if the caller's limits have no room before `until`.
        """
        expected_tokens = num_bytes // _BYTES_PER_TOKEN
        async with self.charged(expected_tokens, until=until) as cost:
            begun = _Begun(cost, expected_tokens)
            outcome = await self._run_when_there_is_room(body, begun, until)
            cost.num_tokens = outcome.stats.num_prompt_tokens + outcome.stats.num_output_tokens
            return await edit_result(body, self._service, outcome)

    def charged(self, expected_tokens: int, *, until: float) -> AbstractAsyncContextManager[Cost]:
        """Work charged to the caller if that has limits. Raises ProblemError (429)."""
        if self._allowance is None:
            return nullcontext(Cost())
        return self._allowance.charged(
            expected_tokens, until=until, check=self._service.check_ready
        )

    async def _run_when_there_is_room(
        self, body: ApplyBody, begun: _Begun, until: float
    ) -> Outcome:
        """One of several edits waits for its turn instead of being sent away."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return await run_body(body, self._service, self._sent_key, begun)
            except QueueFullError:
                if begun.is_set or time.monotonic() + wait_s >= until:
                    raise
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


class _Begun:
    """The sink of an edit's run: notes that the engine has taken it, and what it will cost."""

    def __init__(self, cost: Cost, expected_tokens: int) -> None:
        self.is_set = False
        self._cost = cost
        self._expected_tokens = expected_tokens

    def put(self, event: RunEvent) -> None:
        """Take the run as begun, whatever it tells."""
        self.is_set = True
        self._cost.num_tokens = self._expected_tokens
