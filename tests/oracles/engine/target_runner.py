"""A runner without a model: it knows what every request must write, and checks what it is given."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from batching.request import EngineRequest
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens
from lookup.proposer import EMPTY_DRAFT, Draft

VOCAB_SIZE = 50


def make_target(prompt: Sequence[int], num_tokens: int) -> list[int]:
    """What the imaginary model writes after `prompt`."""
    generator = random.Random(repr(tuple(prompt)))
    return [generator.randrange(VOCAB_SIZE) for _ in range(num_tokens)]


class NoisyProposer:
    """Drafts the target with some tokens wrong, and checks that it is told the right output."""

    def __init__(self, target: Sequence[int], *, error_rate: float, seed: int = 0) -> None:
        generator = random.Random(seed)
        self._target = list(target)
        self._script = [
            (token + 1) % VOCAB_SIZE if generator.random() < error_rate else token
            for token in target
        ]
        self._num_committed = 0
        self.num_builds = 0

    def build(self) -> None:
        self.num_builds += 1

    def propose(self, max_tokens: int) -> Draft:
        assert max_tokens > 0
        assert self.num_builds == 1
        start = self._num_committed
        token_ids = tuple(self._script[start : start + max_tokens])
        return Draft(token_ids, "noisy", 0) if token_ids else EMPTY_DRAFT

    def commit(self, token_ids: Sequence[int]) -> None:
        start = self._num_committed
        self._num_committed += len(token_ids)
        assert list(token_ids) == self._target[start : self._num_committed]


@dataclass
class TrackedRequest:
    """A request with all the tokens it will ever hold, and where it should stand."""

    request: EngineRequest
    token_ids: list[int]
    num_known: int
    states: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        state = hash(self.request.cache_salt)
        for token_id in self.token_ids:
            state = hash((state, token_id))
            self.states.append(state)


class TargetRunner:
    """Verifies drafts against each request's target.

    In the place of keys and values a slot holds a hash of all tokens up to its own, so that stale,
    shared or overwritten slots are found as soon as a request reads them.
    """

    def __init__(self, *, num_blocks: int, block_size: int) -> None:
        self._block_size = block_size
        self._slots: list[int | None] = [None] * (num_blocks * block_size)
        self._requests: dict[str, TrackedRequest] = {}
        self.num_computed_rows = 0

    def track(self, request: EngineRequest) -> list[int]:
        """Make a request known; returns its target, a few tokens longer than its limit."""
        prompt = request.prompt_token_ids
        target = make_target(prompt, request.sampling.max_tokens + 1)
        self._requests[request.request_id] = TrackedRequest(
            request, [*prompt, *target], len(prompt)
        )
        return target

    def execute(self, plan: StepPlan) -> StepResult:
        """Check every row of the plan, write its slots and verify its drafts."""
        written: set[int] = set()
        for scheduled in plan.scheduled:
            self._write(scheduled, written)
        for scheduled in plan.scheduled:
            self._check_context(scheduled)
        self.num_computed_rows += plan.num_tokens
        return StepResult(tuple(self._verify(scheduled) for scheduled in plan.scheduled))

    def _slot(self, scheduled: ScheduledRequest, position: int) -> int:
        block = scheduled.block_ids[position // self._block_size]
        return block * self._block_size + position % self._block_size

    def _write(self, scheduled: ScheduledRequest, written: set[int]) -> None:
        tracked = self._requests[scheduled.request_id]
        start, stop = scheduled.start, scheduled.start + len(scheduled.token_ids)
        assert scheduled.token_ids, "a scheduled request computes at least one token"
        assert stop <= tracked.num_known
        assert list(scheduled.token_ids) == tracked.token_ids[start:stop]
        assert scheduled.has_logits == (stop == tracked.num_known)
        state = tracked.states[start - 1] if start else hash(tracked.request.cache_salt)
        for position, token_id in enumerate(
            (*scheduled.token_ids, *scheduled.draft_token_ids), start=start
        ):
            slot = self._slot(scheduled, position)
            assert slot not in written, "two rows of a step share a slot"
            written.add(slot)
            state = hash((state, token_id))
            self._slots[slot] = state

    def _check_context(self, scheduled: ScheduledRequest) -> None:
        """What stands before the rows of a step is this request's own history."""
        tracked = self._requests[scheduled.request_id]
        for position in range(scheduled.start + len(scheduled.token_ids)):
            held = self._slots[self._slot(scheduled, position)]
            assert held == tracked.states[position], (scheduled.request_id, position)

    def _verify(self, scheduled: ScheduledRequest) -> VerifiedTokens:
        if not scheduled.has_logits:
            assert scheduled.draft is None
            return VerifiedTokens()
        tracked = self._requests[scheduled.request_id]
        num_output = tracked.num_known - len(tracked.request.prompt_token_ids)
        assert scheduled.output_position == num_output
        room = tracked.request.sampling.max_tokens - num_output
        drafts = scheduled.draft_token_ids
        assert len(drafts) < room, "a draft may not outrun the answer's limit"
        expected = tracked.token_ids[tracked.num_known :]
        num_accepted = 0
        while num_accepted < len(drafts) and drafts[num_accepted] == expected[num_accepted]:
            num_accepted += 1
        tracked.num_known += num_accepted + 1
        return VerifiedTokens(tuple(expected[: num_accepted + 1]), num_accepted)
