"""Plans the next step (requests, tokens, blocks) and commits the result of a step.

There are no phases: every step computes some of the gap between `num_computed_tokens` and
`num_tokens`, and behind the last known token a draft to verify.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from batching.answer_counters import AnswerCounters
from batching.block_pool import BlockPool
from batching.cache.prefix_cache import PrefixCache
from batching.config import SchedulerConfig
from batching.errors import (
    BrokenNumbersError,
    ConstraintFailedError,
    DeadlineExceededError,
    EngineError,
    StepFailedError,
)
from batching.events import Cancelled, Event, Failed, Finished, FinishReason, Tokens
from batching.recipes import TokenText
from batching.request import EngineRequest, Priority, RequestState, RequestStatus
from batching.row_planner import PlannedRows, RowPlanner
from batching.service_classes import ServiceClasses, find_victims
from batching.stats import AnswerStats
from batching.step_costs import StepCosts
from batching.step_plan import (
    ScheduledBranch,
    ScheduledRequest,
    StepPlan,
    StepResult,
    VerifiedTokens,
)
from batching.step_trace import forced_step, traced_step
from lookup.proposer import MAIN, Draft

_LOGGER = logging.getLogger(__name__)

# Waiting requests, first in line, whose prompts are searched in lower tiers before they start.
_MAX_LOADS_AHEAD = 8


class Scheduler:
    """Owns every live request. All methods run on the engine thread; times are monotonic seconds.

    The caller has checked that a request fits the model and the pool on its own; that makes every
    admitted request able to finish, if need be by preempting all others.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        *,
        block_pool: BlockPool,
        prefix_cache: PrefixCache,
        costs: StepCosts | None = None,
        vocab_size: int | None = None,
        tokens: TokenText | None = None,
    ) -> None:
        """With `costs` each draft is as long as pays; without, all drafts are equally long.

        Drafts have token ids below `vocab_size`. `tokens` is for recipes that are about text.
        """
        self._config = config
        self._vocab_size = vocab_size
        self._tokens = tokens
        # Each running request of the best class gets a row, so there are no more than rows.
        self._max_running = min(config.max_running, config.max_tokens_per_step)
        self._block_pool = block_pool
        self._prefix_cache = prefix_cache
        self._classes = ServiceClasses(config)
        self._waiting: list[RequestState] = []
        self._running: list[RequestState] = []
        self._row_planner = RowPlanner(
            max_draft_tokens=config.max_draft_tokens,
            costs=costs,
        )
        self._answers = AnswerCounters()
        self._num_preemptions = 0
        self._lost: list[Event] = []

    @property
    def num_waiting(self) -> int:
        """Requests that hold no blocks: new ones and preempted ones."""
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        """Requests that hold blocks; batch requests among them may get no row in a step."""
        return len(self._running)

    @property
    def num_batch_running(self) -> int:
        """Running requests with batch priority."""
        return sum(state.request.priority is Priority.BATCH for state in tuple(self._running))

    @property
    def num_queued_tokens(self) -> int:
        """Known tokens of all requests that are still to be computed."""
        states = (*tuple(self._waiting), *tuple(self._running))
        return sum(max(0, state.num_uncomputed_tokens) for state in states)

    @property
    def has_work(self) -> bool:
        """True if a step can do anything before a load ends or a request comes in."""
        is_any_ready = not all(state.is_loading for state in self._waiting)
        return bool(self._running or self._lost) or is_any_ready

    @property
    def num_preemptions(self) -> int:
        """Preemptions since start."""
        return self._num_preemptions

    def answer_stats(self) -> tuple[AnswerStats, ...]:
        """Times and drafts by part of the answers."""
        return self._answers.stats()

    def add(self, request: EngineRequest, *, now: float) -> None:
        """Put a new request into the queue."""
        chain = self._prefix_cache.new_chain(request.cache_salt)
        state = RequestState(
            request, chain=chain, now=now, vocab_size=self._vocab_size, tokens=self._tokens
        )
        self._waiting.append(state)
        with self._losing_only(state):
            self._take_forced(state, now)
        if request.priority is Priority.INTERACTIVE:
            self._classes.note_interactive(now)

    def cancel(self, request_id: str) -> list[Event]:
        """Drop a request at its owner's wish; no event if it has ended already.

        One that a step is computing is dropped when the step is committed.
        """
        for state in self._live():
            if state.request.request_id == request_id:
                if state.is_in_flight:
                    state.is_withdrawn = True
                    return []
                self._drop(state)
                return [Cancelled(request_id)]
        return []

    def expire(self, now: float) -> list[Event]:
        """Fail every request whose deadline has passed, unless a step is computing it."""
        events: list[Event] = []
        for state in self._live_at_rest():
            deadline = state.request.deadline
            if deadline is not None and now >= deadline:
                self._drop(state)
                error = DeadlineExceededError(
                    f"{now - state.arrival:.1f} s passed and {state.num_output_tokens} tokens were"
                    " written before the deadline; allow more time or send a smaller edit"
                )
                events.append(Failed(state.request.request_id, error))
        return events

    def settle(self, now: float) -> list[Event]:
        """Publish what constraints made certain, and end answers that need no computing (more)."""
        events: list[Event] = []
        for state in self._live_at_rest():
            with self._losing_only(state):
                events += self._settle_request(state, now)
        return events + self.take_lost()

    def take_lost(self) -> list[Event]:
        """The ends of requests whose constraint or stop checker failed since the last call."""
        lost, self._lost = self._lost, []
        return lost

    def fail_all(self, error: EngineError) -> list[Event]:
        """Fail every live request, running or waiting."""
        events: list[Event] = []
        for state in list(self._live()):
            self._drop(state)
            events.append(Failed(state.request.request_id, error))
        return events

    def fail_step(self, plan: StepPlan, error: StepFailedError) -> list[Event]:
        """Fail the requests of a step that could not be computed; the others go on."""
        request_ids = {scheduled.request_id for scheduled in plan.scheduled}
        events: list[Event] = []
        for state in [s for s in self._running if s.request.request_id in request_ids]:
            self._drop(state)
            events.append(Failed(state.request.request_id, error))
        return events

    def schedule(self, now: float, *, num_lanes: int = 1) -> StepPlan:
        """Plan the next step for those that no step under way computes, until it is committed.

        With several lanes it takes no more than its share of all requests. An empty plan means that
        nobody can go on, or nobody is waiting or running. Requests whose constraint fails are lost,
        and the step is planned without them.
        """
        while True:
            try:
                return self._plan(now, num_lanes)
            except ConstraintFailedError as error:
                states = {state.request.request_id: state for state in self._live()}
                self._lose(states[error.request_id], error)

    def _plan(self, now: float, num_lanes: int) -> StepPlan:
        if self._waiting:
            for state in self._running:
                self._store(state)
        self._classes.promote(self._live(), now)
        self._waiting.sort(key=self._classes.rank)
        self._begin_loads(now)
        self._admit(now)
        self._running.sort(key=self._classes.rank)
        entitled, max_rows = self._classes.begin_step(tuple(self._running), now)
        at_rest = [state for state in entitled if not state.is_in_flight]
        candidates = at_rest[: -(-len(entitled) // num_lanes)]
        # Known tokens get their blocks before any draft does: a draft must not cause a preemption.
        grown = [
            rows
            for rows in self._row_planner.plan(candidates, max_rows=max_rows)
            if rows.state.status is RequestStatus.RUNNING
            and self._try_grow(rows.state, rows.num_tokens)
        ]
        scheduled = tuple(self._schedule_request(rows) for rows in grown)
        for rows, one in zip(grown, scheduled, strict=True):
            rows.state.is_in_flight, rows.state.is_asked = True, one.has_logits
        return StepPlan(scheduled, is_paced=self._classes.is_paced(entitled))

    def prepare(self) -> Iterator[None]:
        """What steps under way cannot change, piece by piece.

        What the last step computed is registered. Then drafts are made ahead for the requests that
        no step asks for a token: waiting ones, and some that run. Others only index what they draft
        from.
        """
        for state in self._running:
            if self._store(state):
                yield
        for state in (*self._running, *self._waiting[: self._max_running]):
            yield from state.prepare(self._config.max_draft_tokens, may_draft=not state.is_asked)

    def draftable(self) -> list[RequestState]:
        """The requests of which the next step may verify drafts of drafters."""
        return [
            state
            for state in self._at_rest()
            if state.may_be_drafted
            and state.num_uncomputed_tokens == 1
            and state.num_output_tokens > 0
            and min(state.max_draft_nodes, self._config.max_draft_tokens) > 0
        ]

    def expected_tokens(self, state: RequestState) -> float:
        """The tokens that are expected to hold of what a request's own proposer drafts."""
        draft = state.look_ahead(self._config.max_draft_tokens)
        return 0.0 if draft is None else self._row_planner.expected_tokens(state, draft)

    def reserve_ahead(self, state: RequestState, num_tokens: int) -> bool:
        """Blocks for so many tokens behind the known ones; False if they are not free."""
        return self._try_reserve_for(state, state.num_tokens + num_tokens)

    @property
    def plain_step_ms(self) -> float | None:
        """What a step without drafts costs each request that runs; None if costs are not known."""
        return self._row_planner.plain_step_ms(self._running)

    def draft_rows_ms(self, scheduled: ScheduledRequest) -> float:
        """What the rows of a request's draft added to a step; 0 if costs are not known."""
        return self._row_planner.draft_rows_ms(self._running, scheduled)

    def commit(
        self, plan: StepPlan, result: StepResult, *, now: float, step_s: float = 0.0
    ) -> Iterator[Event]:
        """Take the result of a step of `step_s` seconds into the requests and say what is new.

        The only writer of counts.
        """
        self._classes.end_step(plan, step_s)
        states = {state.request.request_id: state for state in self._running}
        row_s = step_s / max(1, plan.num_tokens)
        for scheduled, verified in zip(plan.scheduled, result.verified, strict=True):
            state = states[scheduled.request_id]
            assert state.is_in_flight, "nobody leaves a step that is under way"
            state.is_in_flight = state.is_asked = False
            if scheduled.branches:
                self._settle_branches(state, _blocks_of_way(scheduled, verified, state.block_ids))
            if state.is_withdrawn:
                self._drop(state)
                yield Cancelled(scheduled.request_id)
                continue
            state.charge(row_s * scheduled.num_all_rows)
            with self._losing_only(state):
                yield from self._commit_request(state, scheduled, verified, now=now)
            yield from self.take_lost()

    def _admit(self, now: float) -> None:
        """Move waiting requests to running, best first, while one prompt's blocks can be had."""
        while True:
            state = next((one for one in self._waiting if not one.is_loading), None)
            if state is None:
                return
            if state.load is not None and state.load_ended is None:
                state.load_ended = now
            if not self._try_start(state):
                return
            if state.load is not None:
                state.load.end()
            if state.first_scheduled is None:
                state.first_scheduled = now
                # Tokens of the answer that a constraint knows beforehand are found as well.
                num_prompt_tokens = len(state.request.prompt_token_ids)
                state.num_cached_tokens = min(state.num_computed_tokens, num_prompt_tokens)
            state.status = RequestStatus.RUNNING
            self._waiting.remove(state)
            self._running.append(state)

    def _begin_loads(self, now: float) -> None:
        """Search the lower tiers for those that will start next; others go ahead meanwhile."""
        for state in self._waiting[:_MAX_LOADS_AHEAD]:
            if state.load_began is None:
                state.load_began = now
                state.load = self._prefix_cache.begin_load(
                    state.chain, state.token_ids[: state.num_prefix_tokens]
                )

    def _try_start(self, state: RequestState) -> bool:
        """Take what is cached of a request's tokens and reserve blocks for the rest of them.

        Requests of lower classes give way if that is what makes the difference.
        """
        state.block_ids = self._prefix_cache.take_prefix(
            state.chain, state.token_ids[: state.num_prefix_tokens], state.load
        )
        state.num_stored_blocks = len(state.block_ids)
        state.num_computed_tokens = len(state.block_ids) * self._config.block_size
        rank = self._classes.rank
        victims = find_victims(
            sorted((one for one in self._at_rest() if rank(one)[0] > rank(state)[0]), key=rank),
            self._block_pool,
            num_blocks=self._num_blocks(state.num_wanted_tokens) - len(state.block_ids),
            num_places=len(self._running) + 1 - self._max_running,
        )
        if victims is None:
            self._release_blocks(state)
            return False
        for victim in victims:
            self._preempt(victim)
        has_room = self._try_reserve_for(state, state.num_wanted_tokens)
        assert has_room, "the victims held what was missing"
        return True

    def _schedule_request(self, planned: PlannedRows) -> ScheduledRequest:
        """The entry of one request; its draft is cut to the blocks that are free."""
        state, draft = planned.state, planned.draft
        start = state.num_computed_tokens
        stop = start + planned.num_tokens
        if draft is not None and not self._try_reserve_for(state, stop + len(draft)):
            room = len(state.block_ids) * self._config.block_size - stop
            draft = state.cut_draft(draft, room)
        branches: tuple[ScheduledBranch, ...] = ()
        if draft is not None and draft.branches:
            draft, branches = self._schedule_branches(state, draft, stop=stop)
        rows = None
        if state.constrained is not None:
            rows = state.constrained.rows(start, stop, draft)
        return ScheduledRequest(
            request_id=state.request.request_id,
            token_ids=tuple(state.token_ids[start:stop]),
            start=start,
            block_ids=tuple(state.block_ids),
            draft=draft,
            has_logits=state.is_end(planned.num_tokens) if rows is None else bool(rows),
            output_position=stop - len(state.request.prompt_token_ids),
            sampling=state.request.sampling,
            constrained_rows=rows,
            branches=branches,
            is_observed=state.may_be_drafted,
            next_token_id=state.token_ids[stop] if stop < state.num_tokens else None,
            cache_salt=state.request.cache_salt,
        )

    def _schedule_branches(
        self, state: RequestState, draft: Draft, *, stop: int
    ) -> tuple[Draft, tuple[ScheduledBranch, ...]]:
        """Rows for the branches of a draft, as far as there are blocks; the others are left out.

        stop: the position of the draft's first token
        """
        tables: dict[int, list[int]] = {MAIN: state.block_ids}
        kept: list[int] = []
        for index, branch in enumerate(draft.branches):
            start = stop + branch.fork
            num_shared = start // self._config.block_size
            num_own = self._num_blocks(stop + branch.depth) - num_shared
            own = self._block_pool.try_reserve(num_own) if branch.parent in tables else None
            if own is not None:
                state.branch_block_ids += own
                tables[index] = [*tables[branch.parent][:num_shared], *own]
                kept.append(index)
        draft = draft.with_branches(kept)
        scheduled = tuple(
            ScheduledBranch(
                branch.fork,
                branch.parent,
                ScheduledRequest(
                    request_id=state.request.request_id,
                    token_ids=branch.token_ids[:1],
                    start=stop + branch.fork,
                    block_ids=tuple(tables[index]),
                    draft=Draft(branch.token_ids[1:], branch.reference, 0),
                    has_logits=True,
                    output_position=stop + branch.fork + 1 - len(state.request.prompt_token_ids),
                    sampling=state.request.sampling,
                ),
            )
            for index, branch in zip(kept, draft.branches, strict=True)
        )
        return draft, scheduled

    def _settle_branches(self, state: RequestState, block_ids: Sequence[int]) -> None:
        """Leave a request these blocks of all that it and the branches of its draft hold."""
        kept = set(block_ids)
        held = [*state.block_ids, *state.branch_block_ids]
        self._block_pool.release([block for block in held if block not in kept])
        state.block_ids, state.branch_block_ids = list(block_ids), []

    def _commit_request(
        self,
        state: RequestState,
        scheduled: ScheduledRequest,
        verified: VerifiedTokens,
        *,
        now: float,
    ) -> Iterator[Event]:
        request = state.request
        if verified.is_broken:
            raise BrokenNumbersError(
                "the model computed NaN or infinity for this request; check the model's weights"
                " and number format (apply-service doctor), or send another text"
            )
        state.target_passes += 1
        state.num_computed_tokens += len(scheduled.token_ids) + verified.num_accepted
        state.evidence += verified.evidence
        reason: FinishReason | None = None
        if verified.token_ids:
            state.decode_passes += 1
            num_kept, reason = state.find_end(verified.token_ids)
            token_ids = verified.token_ids[:num_kept]
            num_asked, num_held = state.write(token_ids, scheduled.draft, verified)
            self._answers.observe(
                state, len(token_ids), drafted=num_asked, accepted=num_held, now=now
            )
            if state.trace is not None:
                state.trace.append(
                    traced_step(scheduled, token_ids, verified=verified, at_s=now - state.arrival)
                )
            if request.proposer is not None:
                state.losses.count_pass(
                    scheduled.draft,
                    num_accepted=verified.num_accepted,
                    num_written=num_kept,
                    is_last=reason is not None,
                    num_own=num_held,
                )
            self._row_planner.observe(
                scheduled, verified, num_verified=num_asked, num_held=num_held
            )
            if token_ids:
                yield Tokens(request.request_id, token_ids, verified.logprobs[:num_kept])
        if state.first_token is None and state.num_computed_tokens >= len(request.prompt_token_ids):
            state.first_token = now
        if state.constrained is not None:
            state.constrained.forget_rows(scheduled.start + len(scheduled.token_ids))
            self._take_forced(state, now)
            yield from self._settle_request(state, now)
        elif reason is not None:
            finished = _finished(state, reason, now)
            self._drop(state)
            yield finished
        if scheduled.draft is not None and state.status is RequestStatus.RUNNING:
            self._release_surplus(state)

    def _take_forced(self, state: RequestState, now: float) -> None:
        token_ids = state.take_forced()
        if state.first_token is not None:  # else no time has passed since another one
            self._answers.observe(state, len(token_ids), drafted=0, accepted=0, now=now)
        if token_ids and state.trace is not None:
            state.trace.append(forced_step(token_ids, at_s=now - state.arrival))

    def _settle_request(self, state: RequestState, now: float) -> Iterator[Event]:
        """What a constraint made certain, and the end if nothing is left to be computed."""
        request = state.request
        if state.unpublished:
            yield Tokens(request.request_id, state.take_unpublished())
        if state.constrained is None:
            return
        reason: FinishReason | None = None
        if state.is_answer_complete:
            reason = "stop" if state.num_uncomputed_tokens <= 0 else None
        elif state.num_output_tokens >= request.sampling.max_tokens:
            reason = "length"
        if reason is not None:
            finished = _finished(state, reason, now)
            self._drop(state)
            yield finished

    def _try_grow(self, state: RequestState, num_tokens: int) -> bool:
        """Blocks for the next `num_tokens` tokens, by preempting requests of lower rank if need be.

        False when the request itself had to go back to the queue, or has to wait for the blocks of
        those that a step is computing.
        """
        target = state.num_computed_tokens + num_tokens
        while not self._try_reserve_for(state, target):
            at_rest = self._at_rest()
            victim = at_rest[-1]
            if victim is state and len(at_rest) < len(self._running):
                return False
            self._preempt(victim)
            if victim is state:
                return False
        return True

    def _try_reserve_for(self, state: RequestState, num_tokens: int) -> bool:
        num_blocks = self._num_blocks(num_tokens) - len(state.block_ids)
        if num_blocks <= 0:
            return True
        reserved = self._block_pool.try_reserve(num_blocks)
        if reserved is None:
            return False
        state.block_ids += reserved
        return True

    def _preempt(self, state: RequestState) -> None:
        """Take a request's blocks; what it has computed stays findable until overwritten."""
        self._running.remove(state)
        self._release_blocks(state)
        self._num_preemptions += 1
        state.status = RequestStatus.PREEMPTED
        self._waiting.append(state)

    @contextmanager
    def _losing_only(self, state: RequestState) -> Iterator[None]:
        """Whatever fails within is the fault of one request, which is lost; others go on."""
        try:
            yield
        except EngineError as error:
            self._lose(state, error)
        except Exception as error:  # what callers bring along may raise anything
            failure = StepFailedError(
                f"the request failed: {error!r}; send it again, and report this"
            )
            failure.__cause__ = error
            self._lose(state, failure)

    def _lose(self, state: RequestState, error: EngineError) -> None:
        _LOGGER.error("request %s is lost", state.request.request_id, exc_info=error)
        if state.status is not RequestStatus.FINISHED:
            self._drop(state)
            self._lost.append(Failed(state.request.request_id, error))

    def _drop(self, state: RequestState) -> None:
        (self._running if state.status is RequestStatus.RUNNING else self._waiting).remove(state)
        self._release_blocks(state)
        if state.load is not None:
            state.load.end()
        state.status = RequestStatus.FINISHED

    def _store(self, state: RequestState) -> bool:
        """Make the full blocks of a request findable, and offer its prompt to the lower tiers.

        False if there was nothing new. This may wait until the device has the next step, but not
        until others look for blocks or the request gives them back.
        """
        num_full = state.num_computed_tokens // self._config.block_size
        if num_full <= state.num_stored_blocks:
            return False
        state.num_stored_blocks = self._prefix_cache.store(
            state.chain,
            state.token_ids,
            num_tokens=state.num_computed_tokens,
            blocks=state.block_ids,
            start=state.num_stored_blocks,
        )
        state.num_offered_chunks = self._prefix_cache.offer_chunks(
            state.chain,
            state.request.prompt_token_ids,
            blocks=state.block_ids[: state.num_stored_blocks],
            start=state.num_offered_chunks,
            num_cached_tokens=state.num_cached_tokens,
        )
        return True

    def _release_blocks(self, state: RequestState) -> None:
        self._store(state)
        self._settle_branches(state, ())
        state.num_computed_tokens = 0
        state.num_stored_blocks = 0

    def _release_surplus(self, state: RequestState) -> None:
        """Give back the blocks that only rejected drafts needed; others may start in them."""
        num_blocks = self._num_blocks(state.num_tokens)
        self._block_pool.release(state.block_ids[num_blocks:])
        del state.block_ids[num_blocks:]

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._config.block_size)

    def _live(self) -> list[RequestState]:
        return [*self._running, *self._waiting]

    def _at_rest(self) -> list[RequestState]:
        """The running requests that no step under way computes; only they may lose their blocks."""
        return [state for state in self._running if not state.is_in_flight]

    def _live_at_rest(self) -> list[RequestState]:
        return [*self._at_rest(), *self._waiting]


def _blocks_of_way(
    scheduled: ScheduledRequest, verified: VerifiedTokens, block_ids: Sequence[int]
) -> Sequence[int]:
    """The blocks of the way that the model took; `block_ids` are those of the draft itself."""
    if verified.branch == MAIN:
        return block_ids
    return scheduled.branches[verified.branch].rows.block_ids


def _finished(state: RequestState, reason: FinishReason, now: float) -> Finished:
    return Finished(
        state.request.request_id,
        reason,
        state.stats(now),
        tuple(state.evidence),
        tuple(state.trace or ()),
    )
