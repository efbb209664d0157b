"""Runs a request through the engine's own scheduler, with an oracle where the model would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from batching.block_pool import BlockPool
from batching.cache.prefix_cache import PrefixCache
from batching.config import SchedulerConfig
from batching.constrained_answer import LogitsRow
from batching.events import Event, Finished, RequestStats, Tokens
from batching.request import EngineRequest
from batching.scheduler import Scheduler
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens

Spell = Callable[[int], Sequence[int]]


def spell_by_id(token_id: int) -> Sequence[int]:
    """A token as the one symbol that it is, where a text has one tokenisation."""
    return (token_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleRun:
    """The result of a request: its figures, its tokens, and how often the oracle was asked.

    `num_decisions` counts the decisions that were taken, `num_asking_passes` the forwards that took
    at least one or, without a constraint, wrote a token.
    """

    stats: RequestStats
    token_ids: tuple[int, ...]
    num_decisions: int
    num_asking_passes: int


class TruthLostError(Exception):
    """The constraint forbids a token that the oracle has to write."""


def run_oracle(
    request: EngineRequest,
    truth: Sequence[int],
    *,
    scheduler_config: SchedulerConfig,
    spell: Spell = spell_by_id,
) -> OracleRun:
    """Serve one request to its end; the oracle writes `truth`, its end included.

    Under a constraint tokens may spell the same text in several ways: `spell` gives their symbols,
    and of the allowed tokens that go along the truth the longest is taken. Raises
    `TruthLostError`, also where a forced token is not the truth's.
    """
    block_size = scheduler_config.block_size
    num_tokens = len(request.prompt_token_ids) + request.sampling.max_tokens
    num_tokens += scheduler_config.max_draft_tokens
    pool = BlockPool(-(-num_tokens // block_size) + 1)
    cache = PrefixCache(pool, block_size=block_size, model_fingerprint="oracle")
    scheduler = Scheduler(scheduler_config, block_pool=pool, prefix_cache=cache)
    oracle = _Oracle(truth, spell)
    scheduler.add(request, now=0.0)
    finished = oracle.read(scheduler.settle(0.0))
    while finished is None:
        plan = scheduler.schedule(0.0)
        finished = oracle.read(scheduler.commit(plan, oracle.execute(plan), now=0.0))
    return OracleRun(
        stats=finished.stats,
        token_ids=tuple(oracle.token_ids),
        num_decisions=oracle.num_decisions,
        num_asking_passes=oracle.num_asking_passes,
    )


class _Oracle:
    """Verifies drafts and takes decisions as a model would that always writes the truth."""

    def __init__(self, truth: Sequence[int], spell: Spell) -> None:
        self._truth = tuple(truth)
        self._spell = spell
        self._symbols = tuple(chain.from_iterable(map(spell, truth)))
        self._num_known = 0
        self.token_ids: list[int] = []
        self.num_decisions = 0
        self.num_asking_passes = 0

    def read(self, events: Iterable[Event]) -> Finished | None:
        """Take what was written; the last event if it is among the events."""
        finished = None
        for event in events:
            if isinstance(event, Tokens):
                self._num_known = self._behind(self._num_known, event.token_ids)
                self.token_ids += event.token_ids
            else:
                assert isinstance(event, Finished), event
                finished = event
        return finished

    def execute(self, plan: StepPlan) -> StepResult:
        """The result of a step."""
        return StepResult(tuple(self._verify(scheduled) for scheduled in plan.scheduled))

    def _verify(self, scheduled: ScheduledRequest) -> VerifiedTokens:
        if not scheduled.has_logits:
            return VerifiedTokens()
        if scheduled.constrained_rows is not None:
            return self._decide(scheduled, scheduled.constrained_rows)
        self.num_asking_passes += 1
        expected = self._truth[scheduled.output_position :]
        drafted = scheduled.draft_token_ids
        num_accepted = 0
        for token_id, other in zip(drafted, expected, strict=False):
            if token_id != other:
                break
            num_accepted += 1
        written = expected[: num_accepted + 1]
        return VerifiedTokens(written, min(num_accepted, len(written) - 1))

    def _decide(self, scheduled: ScheduledRequest, rows: Sequence[LogitsRow]) -> VerifiedTokens:
        """Go through the rows as far as the draft holds; the last one gives its own token."""
        asked = [row for row in rows if not row.is_settled]
        if not asked:
            return VerifiedTokens()
        drafted = scheduled.draft_token_ids
        first = scheduled.start + len(scheduled.token_ids) - 1
        num_decisions = 0
        for row in asked:
            num_kept = row.position - first
            place = self._behind(self._num_known, drafted[:num_kept])
            token_id = self._choose(place, row.allowed_token_ids)
            num_decisions += row.is_decision
            if token_id != row.known_token_id:
                break
        self.num_decisions += num_decisions
        self.num_asking_passes += bool(num_decisions)
        return VerifiedTokens((*drafted[:num_kept], token_id), num_kept)

    def _choose(self, place: int, allowed: Sequence[int]) -> int:
        """The allowed token that goes on with the truth from a place in its symbols."""
        fitting = [token_id for token_id in allowed if self._fits(place, self._spell(token_id))]
        if not fitting:
            raise TruthLostError(f"none of {len(allowed)} allowed tokens is right at {place}")
        return max(fitting, key=lambda token_id: len(self._spell(token_id)))

    def _behind(self, place: int, token_ids: Sequence[int]) -> int:
        """The place in the truth's symbols behind tokens that are written."""
        for token_id in token_ids:
            symbols = self._spell(token_id)
            if not self._fits(place, symbols):
                raise TruthLostError(f"token {token_id} at {place} is forced and not the truth's")
            place += len(symbols)
        return place

    def _fits(self, place: int, symbols: Sequence[int]) -> bool:
        return self._symbols[place : place + len(symbols)] == tuple(symbols)
