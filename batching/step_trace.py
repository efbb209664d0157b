"""How a step came to what it wrote of an answer, for requests that want to know."""

from __future__ import annotations

from collections.abc import Sequence

from batching.events import TokenOrigin, TracedStep
from batching.step_plan import ScheduledRequest


def forced_step(token_ids: Sequence[int], *, at_s: float) -> TracedStep:
    """Tokens that a constraint forced without a step."""
    origins: tuple[TokenOrigin, ...] = ("forced",)
    return TracedStep(at_s=at_s, token_ids=tuple(token_ids), origins=origins * len(token_ids))


def traced_step(
    scheduled: ScheduledRequest, token_ids: Sequence[int], *, num_accepted: int, at_s: float
) -> TracedStep:
    """What a step wrote: `num_accepted` tokens of its draft, and the one that the model chose.

    `token_ids` may be fewer, where the answer ended among them.
    """
    asked = {
        scheduled.output_position_of(row) - scheduled.output_position
        for row in scheduled.logits_rows
    }

    def origin(at: int) -> TokenOrigin:
        if at not in asked:
            return "forced"
        return "drafted" if at < num_accepted else "written"

    return TracedStep(
        at_s=at_s,
        token_ids=tuple(token_ids),
        origins=tuple(map(origin, range(len(token_ids)))),
        reference=scheduled.draft.reference if scheduled.draft else None,
        rejected_token_ids=scheduled.draft_token_ids[num_accepted:],
    )
