"""Keeps what callers bring along from harming others: a proposer or a constraint that raises."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from batching.errors import ConstraintFailedError
from batching.recipes import ByteMerges, EditDrafts, Merges, TokenMerges, TokenText
from lookup.constraint import ConstrainedDraft, Constraint
from lookup.proposer import EMPTY_DRAFT, MAIN, Draft, Proposer

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class GuardedProposer:
    """A proposer that proposes nothing more once it has raised, or drafted what is no token.

    vocab_size: token ids lie below it; None leaves them unchecked
    """

    def __init__(
        self, proposer: Proposer | EditDrafts, request_id: str, *, vocab_size: int | None
    ) -> None:
        self._request_id = request_id
        self._vocab_size = vocab_size
        self._proposer: Proposer | None = None
        try:
            self._proposer = proposer.make() if isinstance(proposer, EditDrafts) else proposer
        except Exception as error:  # whatever it is, the request can do without drafts
            self._give_up(error)

    def build(self) -> Iterator[None]:
        """Begin what the proposer indexes ahead; the rest of it, piece by piece."""
        pieces: Iterator[None] | None = None
        try:
            if self._proposer is not None:
                pieces = self._proposer.build()
        except Exception as error:  # as above
            self._give_up(error)
        return self._guarded(pieces or iter(()))

    def _guarded(self, pieces: Iterator[None]) -> Iterator[None]:
        try:
            yield from pieces
        except Exception as error:  # as above
            self._give_up(error)

    def propose(self, max_tokens: int) -> Draft:
        """A draft; the empty one where the proposer is at fault."""
        if self._proposer is None:
            return EMPTY_DRAFT
        try:
            draft = self._proposer.propose(max_tokens)
            if draft.token_ids:
                check_draft(draft, max_tokens, self._vocab_size)
        except Exception as error:  # as above
            return self._give_up(error)
        return draft

    def commit(self, token_ids: Sequence[int]) -> None:
        """Tell the proposer what was written."""
        if self._proposer is None:
            return
        try:
            self._proposer.commit(token_ids)
        except Exception as error:  # as above
            self._give_up(error)

    def _give_up(self, error: Exception) -> Draft:
        _LOGGER.error(
            "the proposer of request %s failed, which goes on without drafts",
            self._request_id,
            exc_info=error,
        )
        self._proposer = None
        return EMPTY_DRAFT


def check_draft(draft: Draft, max_tokens: int, vocab_size: int | None) -> None:
    """Raise ValueError for a draft, of one token at least, that no step could compute."""
    if draft.num_nodes > max_tokens:
        raise ValueError(f"{draft.num_nodes} tokens were drafted, {max_tokens} were asked for")
    for index, branch in enumerate(draft.branches):
        _check_place(draft, index)
        if not branch.token_ids:
            raise ValueError(f"branch {index} has no tokens")
    if vocab_size is None:
        return
    token_ids = [*draft.token_ids, *chain.from_iterable(b.token_ids for b in draft.branches)]
    low, high = min(token_ids), max(token_ids)
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(f"{wrong} is no token; the vocabulary has {vocab_size}")


def _check_place(draft: Draft, index: int) -> None:
    """Raise ValueError for a branch that does not leave a way that is there."""
    branch = draft.branches[index]
    if not MAIN <= branch.parent < index:
        raise ValueError(f"branch {index} has parent {branch.parent}; take an earlier one")
    parent = None if branch.parent == MAIN else draft.branches[branch.parent]
    first, stop = (0, len(draft)) if parent is None else (parent.fork + 1, parent.depth)
    if not first <= branch.fork < stop:
        raise ValueError(f"branch {index} forks at {branch.fork}, its parent has {first} to {stop}")


class GuardedConstraint:
    """A constraint whose errors name the request that has to end: ConstraintFailedError."""

    def __init__(
        self,
        constraint: Constraint[Any] | Merges,
        request_id: str,
        tokens: TokenText | None = None,
    ) -> None:
        self._request_id = request_id
        self._recipe: Constraint[Any] | Merges = constraint
        self._tokens = tokens

    @cached_property
    def _constraint(self) -> Constraint[Any]:
        """The constraint, made where its errors are guarded."""
        if isinstance(self._recipe, TokenMerges | ByteMerges):
            return self._recipe.make(self._tokens)
        return self._recipe

    @property
    def is_complete(self) -> bool:
        """True if the answer may end here."""
        return self._guarded(lambda: self._constraint.is_complete)

    @property
    def is_border(self) -> bool:
        """True if the logits for the next token are wanted anyway."""
        return self._guarded(lambda: self._constraint.is_border)

    def allowed_next(self) -> tuple[int, ...]:
        """The ids of all tokens that lead to a valid answer."""
        return self._guarded(lambda: self._constraint.allowed_next())

    def log_prior(self) -> tuple[float, ...]:
        """Terms to add to the log-probabilities of these tokens."""
        return self._guarded(lambda: self._constraint.log_prior())

    def draft(self, max_tokens: int) -> ConstrainedDraft:
        """The likeliest continuation."""
        return self._guarded(lambda: self._constraint.draft(max_tokens))

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind a run of tokens."""
        self._guarded(lambda: self._constraint.advance_all(token_ids))

    def _guarded(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Exception as error:  # whatever it is, it must not end the step of others
            raise ConstraintFailedError(self._request_id, error) from error
