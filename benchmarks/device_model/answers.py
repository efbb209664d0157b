"""What a request with a known answer writes in a step, whatever a model would say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from batching.step_plan import ScheduledRequest


def written_tokens(scheduled: ScheduledRequest, answer: Sequence[int]) -> Sequence[int]:
    """What holds of a draft, and the token behind it; the last token again after the end."""
    draft, at = scheduled.draft_token_ids, scheduled.output_position
    true = answer[at : at + len(draft) + 1]
    if len(true) == len(draft) + 1 and tuple(true[:-1]) == draft:
        return true
    pairs = zip(draft, true, strict=False)
    num_held = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return [*true, answer[-1]][: num_held + 1]
