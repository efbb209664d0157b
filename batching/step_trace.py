"""How a step came to what it wrote of an answer, for requests that want to know."""

from __future__ import annotations

from collections.abc import Sequence

from batching.events import TokenOrigin, TracedStep
from batching.step_plan import ScheduledRequest, VerifiedTokens
from lookup.proposer import MAIN


def forced_step(token_ids: Sequence[int], *, at_s: float) -> TracedStep:
    """Tokens that a constraint forced without a step."""
    origins: tuple[TokenOrigin, ...] = ("forced",)
    return TracedStep(at_s=at_s, token_ids=tuple(token_ids), origins=origins * len(token_ids))


def traced_step(
    scheduled: ScheduledRequest, token_ids: Sequence[int], *, verified: VerifiedTokens, at_s: float
) -> TracedStep:
    """What a step wrote: accepted tokens of its draft, and the one that the model chose.

    `token_ids` may be fewer, where the answer ended among them.
    """
    num_accepted = verified.num_accepted
    rejected: tuple[int, ...] = ()
    if scheduled.draft is not None:
        draft, stops = scheduled.draft, scheduled.draft.stops(verified.branch, num_accepted)
        rejected = draft.token_ids[stops[MAIN] :]
        for index, branch in enumerate(draft.branches):
            rejected += branch.token_ids[stops.get(index, branch.fork) - branch.fork :]
    rows = scheduled.constrained_rows
    asked = None
    if rows is not None:
        asked = {scheduled.output_position_of(row) - scheduled.output_position for row in rows}

    def origin(at: int) -> TokenOrigin:
        if asked is not None and at not in asked:
            return "forced"
        return "drafted" if at < num_accepted else "written"

    return TracedStep(
        at_s=at_s,
        token_ids=tuple(token_ids),
        origins=tuple(map(origin, range(len(token_ids)))),
        reference=scheduled.draft.reference if scheduled.draft else None,
        rejected_token_ids=rejected,
    )
