"""The interface of a constraint on a request's answer: a `Constraint` over token ids.

A constraint knows the valid answers and the answer's position in them. The position is the only
state that changes; looking ahead never changes it.

GrammarError
├── InvalidRulesError       the rules contradict themselves or are too many
└── TokenNotAllowedError    a token that no valid merge has at this position
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

State = TypeVar("State")


class GrammarError(ValueError):
    """Base of the errors of building a grammar and of leaving it."""


class InvalidRulesError(GrammarError):
    """Rules that contradict themselves, or are too many to be simulated."""


class TokenNotAllowedError(GrammarError):
    """A token that no valid merge has at this position."""


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A choice `offset` tokens behind the present position.

    `allowed_token_ids`, ascending, are more than one, or the answer may as well end here. They
    hold if all tokens of the draft before `offset` do. `log_prior` is as in `Constraint.log_prior`.
    """

    offset: int
    allowed_token_ids: tuple[int, ...]
    log_prior: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstrainedDraft:
    """Tokens of one valid answer, from the present position on.

    Every token whose offset is not that of a decision is forced by those before it: it needs no
    row of logits. A decision at `offset == len(token_ids)` is about the token behind the draft.
    `border_offsets`, ascending, are forced tokens at which the model's own wish is wanted as
    evidence: a full row of logits, whose result changes nothing. `is_complete`: the answer ends
    with the draft.
    """

    token_ids: tuple[int, ...]
    decisions: tuple[DecisionRow, ...] = ()
    border_offsets: tuple[int, ...] = ()
    is_complete: bool = False

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def num_forced(self) -> int:
        """Tokens before the first decision; they may be streamed before anything is computed."""
        return self.decisions[0].offset if self.decisions else len(self.token_ids)


class Constraint(Protocol[State]):
    """The valid answers of one request, and a position in them.

    The engine may rely on this: at every position that is reached by allowed tokens there is a
    valid answer that goes on from there, so no allowed token leads into a dead end; an answer is
    valid exactly if all its tokens were allowed and `is_complete` holds behind the last one; the
    methods that look ahead (`allowed_next`, `log_prior`, `forced_run`, `draft`) change nothing and
    give the same result until the position changes. Owned by one thread at a time.
    """

    @property
    def is_complete(self) -> bool:
        """True if the answer may end here.

        It must end here if `allowed_next` is empty as well, as it always is where the answer is
        closed by a token of its own.
        """
        ...

    @property
    def is_border(self) -> bool:
        """True if the logits for the next token are wanted even if only one token is allowed."""
        ...

    def allowed_next(self) -> tuple[int, ...]:
        """The ids, ascending, of all tokens that lead to a valid answer."""
        ...

    def log_prior(self) -> tuple[float, ...]:
        """Terms to add to the log-probabilities of `allowed_next()`; an empty tuple adds none."""
        ...

    def forced_run(self, max_tokens: int | None = None) -> list[int]:
        """The tokens up to the next decision or the end, at most `max_tokens`; perhaps none.

        A decision is a position with more than one allowed token, or one where the answer may
        end or go on. A constraint on text may take the canonical tokenisation of forced text for
        forced.
        """
        ...

    def draft(self, max_tokens: int | None = None) -> ConstrainedDraft:
        """The likeliest continuation, through decisions, at most `max_tokens` long.

        The draft begins with `forced_run(max_tokens)`. With None it reaches to the end.
        """
        ...

    def advance(self, token_id: int) -> None:
        """Move behind an allowed token. Raises `GrammarError` without any move."""

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind a run of tokens at once. Raises `GrammarError` without any move."""

    def snapshot(self) -> State:
        """The position as an immutable value; costs nothing, holds as long as the constraint."""
        ...

    def restore(self, state: State) -> None:
        """Return to a position of this constraint, in either direction."""
