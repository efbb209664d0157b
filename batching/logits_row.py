"""A row of logits: where the model is asked for a token, or listened to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogitsRow:
    """A row of logits at `position` of a request's tokens.

    The token behind it must be one of `allowed_token_ids`, ascending; none allows all. `log_prior`,
    one value for each of them or none, is added to their logits.
    `known_token_id` is that token where it is drafted or, if the row `is_settled`, written already.
    A row that is no decision is only evidence, unless not even that is wanted.
    """

    position: int
    allowed_token_ids: tuple[int, ...]
    known_token_id: int | None
    is_decision: bool = True
    is_settled: bool = False
    has_evidence: bool = True
    log_prior: tuple[float, ...] = ()
