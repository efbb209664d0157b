"""Interactive before batch: ranks requests, gives them rows, and picks whom to preempt.

While interactive requests run, batch requests get no rows. So that they end all the same, one of
them at a time counts as interactive once it has waited long. A step cannot be left once it has
begun, so steps of batch requests are short as long as interactive requests may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batching.block_pool import BlockPool
from batching.config import SchedulerConfig
from batching.request import Priority, RequestState, RequestStatus
from batching.step_plan import StepPlan

# A step of batch requests should be over by then, whatever the device.
_BATCH_STEP_S = 0.05
_MIN_BATCH_TOKENS = 16
# Without an interactive request for so long, none is expected, and batch gets whole steps.
_QUIET_S = 60.0


class ServiceClasses:
    """Keeps the promoted batch request and the pace of batch steps; used by the scheduler alone."""

    def __init__(self, config: SchedulerConfig) -> None:
        self._ageing_s = config.ageing_s
        self._max_tokens = config.max_tokens_per_step
        self._batch_tokens = float(config.max_tokens_per_step)
        self._promoted: RequestState | None = None
        self._promotion_ended = float("-inf")
        self._interactive_seen = float("-inf")

    def rank(self, state: RequestState) -> tuple[int, float]:
        """Sort key: class, then arrival."""
        is_promoted = state is self._promoted
        return Priority.INTERACTIVE if is_promoted else state.request.priority, state.arrival

    def promote(self, live: Iterable[RequestState], now: float) -> None:
        """Let the batch request that came first count as interactive, if that is due.

        It is due when the request is `ageing_s` old and the last promotion ended as long ago.
        """
        if self._promoted is not None and self._promoted.status is RequestStatus.FINISHED:
            self._promoted, self._promotion_ended = None, now
        if self._promoted is not None or now - self._promotion_ended < self._ageing_s:
            return
        batch = [one for one in live if one.request.priority is Priority.BATCH]
        oldest = min(batch, key=lambda one: one.arrival, default=None)
        if oldest is not None and now - oldest.arrival >= self._ageing_s:
            self._promoted = oldest

    def note_interactive(self, now: float) -> None:
        """Note that an interactive request has come; more of them may follow."""
        self._interactive_seen = now

    def begin_step(
        self, running: Sequence[RequestState], now: float
    ) -> tuple[Sequence[RequestState], int]:
        """Requests of `running` (sorted by rank) that get rows, and the rows of the whole step."""
        if not running:
            return running, self._max_tokens
        best_class, _ = self.rank(running[0])
        if best_class == Priority.INTERACTIVE:
            if running[0] is not self._promoted or len(running) > 1:
                self.note_interactive(now)
            return [one for one in running if self.rank(one)[0] == best_class], self._max_tokens
        if now - self._interactive_seen > _QUIET_S:
            return running, self._max_tokens
        num_tokens = int(self._batch_tokens)
        return running[:num_tokens], num_tokens

    def is_paced(self, running: Sequence[RequestState]) -> bool:
        """True if a step of `running` (sorted by rank) is one of batch requests."""
        return bool(running) and self.rank(running[0])[0] == Priority.BATCH

    def end_step(self, plan: StepPlan, seconds: float) -> None:
        """Learn from a step of batch requests how many tokens are done in time."""
        if not plan.is_paced or not plan.scheduled:
            return
        pace = min(max(_BATCH_STEP_S / max(seconds, 1e-6), 0.5), 1.25)
        if pace < 1 or 2 * plan.num_tokens >= self._batch_tokens:
            lowest = min(_MIN_BATCH_TOKENS, self._max_tokens)
            self._batch_tokens = min(max(self._batch_tokens * pace, lowest), self._max_tokens)


def find_victims(
    candidates: Sequence[RequestState],
    block_pool: BlockPool,
    *,
    num_blocks: int,
    num_places: int,
) -> list[RequestState] | None:
    """Candidates to preempt so that `num_blocks` blocks and `num_places` places become free.

    Candidates are sorted by rank, and the last go first; none goes whose blocks turn out not to be
    needed. None if all of them would not do.
    """

    def is_enough(chosen: Sequence[RequestState]) -> bool:
        num_free = block_pool.num_free_without(one.block_ids for one in chosen)
        return num_free >= num_blocks and len(chosen) >= num_places

    if not is_enough(candidates):
        return None
    remaining = list(candidates)
    victims: list[RequestState] = []
    while not is_enough(victims):
        victims.append(remaining.pop())
    for victim in reversed(victims.copy()):
        others = [one for one in victims if one is not victim]
        if is_enough(others):
            victims = others
    return victims
