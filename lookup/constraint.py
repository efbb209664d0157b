"""What a request may carry to bind its answer: a `Constraint` over token ids.

A constraint knows the answers that are valid and where in them the answer now stands. Its
position is the only thing that changes; looking ahead never does.

GrammarError
├── InvalidRulesError       the rules contradict themselves or are too many
├── NoPathError             not all segments can be placed
└── TokenNotAllowedError    a token that no valid merge has at this position
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

State = TypeVar("State")


class GrammarError(ValueError):
    """A grammar cannot be built, or was left."""


class InvalidRulesError(GrammarError):
    """Rules that contradict themselves, or are too many to be simulated."""


class NoPathError(GrammarError):
    """No choice of placements puts every segment into the original."""


class TokenNotAllowedError(GrammarError):
    """A token that no valid merge has at this position."""


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """There is a choice `offset` tokens behind the present position.

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
        """True if the logits for the next token are wanted even if one token alone is allowed."""
        ...

    def allowed_next(self) -> tuple[int, ...]:
        """The ids, ascending, of all tokens that go on towards a valid answer."""
        ...

    def log_prior(self) -> tuple[float, ...]:
        """What to add to the model's log-probability of each of `allowed_next()`; none is 0."""
        ...

    def forced_run(self, max_tokens: int | None = None) -> list[int]:
        """The tokens up to the next decision or the end, at most `max_tokens`; maybe none.

        A decision is a position with more than one allowed token, or one where the answer may
        end or go on. A constraint on text may take the canonical tokenisation of forced text for
        forced.
        """
        ...

    def draft(self, max_tokens: int | None = None) -> ConstrainedDraft:
        """The likeliest way on, through decisions, at most `max_tokens` long.

        The draft begins with `forced_run(max_tokens)`. With None it reaches to the end.
        """
        ...

    def advance(self, token_id: int) -> None:
        """Move behind an allowed token. Raises `GrammarError`, and moves not at all, otherwise."""

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind a run of tokens at once. Raises `GrammarError`, and moves not at all."""

    def snapshot(self) -> State:
        """The position as an immutable value; costs nothing, holds as long as the constraint."""
        ...

    def restore(self, state: State) -> None:
        """Return to a position of this constraint, in either direction."""
