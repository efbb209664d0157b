"""Tracks the answer of a constrained request: its certain tokens and its open decisions.

Tokens that the constraint forces are known without the model. They are computed like a prompt,
because what follows them needs their keys and values; where nothing follows, they are not computed
at all. The model is asked at decisions, and listened to at borders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from batching.guards import GuardedConstraint
from lookup.constraint import ConstrainedDraft
from lookup.proposer import Draft


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


CONSTRAINT_REFERENCE = "constraint"


class ConstrainedAnswer:
    """Follows a constraint through one answer. Owned by the scheduler.

    Without look-ahead nothing is taken for certain and nothing drafted: one token a step, each
    among those that are allowed.
    """

    def __init__(
        self, constraint: GuardedConstraint, *, num_prompt_tokens: int, looks_ahead: bool
    ) -> None:
        self._constraint = constraint
        self._looks_ahead = looks_ahead
        self._num_tokens = num_prompt_tokens
        self._ahead: ConstrainedDraft | None = None
        self._listening: deque[LogitsRow] = deque()
        self._is_forced_taken = False

    @property
    def is_complete(self) -> bool:
        """True if the answer has ended; rows may still be wanted as evidence."""
        return self._constraint.is_complete and not self._constraint.allowed_next()

    @property
    def first_row(self) -> int | None:
        """The first position whose logits are still wanted though the next token is known."""
        return self._listening[0].position if self._listening else None

    @property
    def num_wanted_tokens(self) -> int:
        """Leading tokens of the request that have to be computed."""
        if not self.is_complete:
            return self._num_tokens
        return self._listening[-1].position + 1 if self._listening else 0

    @property
    def choice_offsets(self) -> tuple[int, ...]:
        """Offsets in the last draft at which the model may choose another token."""
        return () if self._ahead is None else tuple(row.offset for row in self._ahead.decisions)

    def take_forced(self, max_tokens: int) -> list[int]:
        """Move over all tokens that are certain now, at most `max_tokens`."""
        if not self._looks_ahead or self._is_forced_taken or max_tokens <= 0:
            return []
        ahead = self._constraint.draft(max_tokens)
        forced = ahead.token_ids[: ahead.num_forced]
        for offset in ahead.border_offsets:
            if offset < len(forced):
                position = self._num_tokens + offset - 1
                self._listening.append(
                    LogitsRow(
                        position,
                        (forced[offset],),
                        forced[offset],
                        is_decision=False,
                        is_settled=True,
                    )
                )
        self._move(forced)
        self._is_forced_taken = True
        return list(forced)

    def draft(self, max_tokens: int) -> Draft | None:
        """Tokens behind the present decision that are worth computing with it, or None."""
        if not self._looks_ahead or max_tokens <= 0 or self.is_complete:
            return None
        self._ahead = self._constraint.draft(max_tokens + 1)
        return self.cut_draft(max_tokens)

    def cut_draft(self, max_tokens: int) -> Draft | None:
        """The last draft, at most `max_tokens` long: it ends where a row is wanted."""
        assert self._ahead is not None, "only what was drafted can be cut"
        num_tokens = max(row.position for row in self._rows_ahead(max_tokens))
        num_tokens -= self._num_tokens - 1
        if not num_tokens:
            self._ahead = None
            return None
        return Draft(self._ahead.token_ids[:num_tokens], CONSTRAINT_REFERENCE, 0)

    def rows(self, start: int, stop: int, draft: Draft | None) -> tuple[LogitsRow, ...]:
        """The rows with logits among positions `[start, stop)` and those of `draft` behind them.

        If `stop` is the end of what is known, the last known position has the present decision.
        """
        rows = [row for row in self._listening if start <= row.position < stop]
        if stop == self._num_tokens and not self.is_complete:
            rows += self._rows_ahead(len(draft) if draft else 0)
        return tuple(rows)

    def _rows_ahead(self, num_drafted: int) -> list[LogitsRow]:
        """Rows at the last known token and at the next `num_drafted` tokens."""
        last = self._num_tokens - 1
        if self._ahead is None:
            allowed = self._constraint.allowed_next()
            is_decision = len(allowed) > 1
            has_evidence = is_decision or self._constraint.is_border
            prior = self._constraint.log_prior() if is_decision else ()
            return [
                LogitsRow(
                    last, allowed, None, is_decision, has_evidence=has_evidence, log_prior=prior
                )
            ]
        ahead = self._ahead.token_ids
        asked = [
            (row.offset, row.allowed_token_ids, True, row.log_prior)
            for row in self._ahead.decisions
        ]
        asked += [
            (offset, (ahead[offset],), False, ())
            for offset in self._ahead.border_offsets
            if offset < len(ahead)
        ]
        return [
            LogitsRow(
                last + offset,
                allowed,
                ahead[offset] if offset < len(ahead) else None,
                is_decision,
                log_prior=prior,
            )
            for offset, allowed, is_decision, prior in sorted(asked)
            if offset <= num_drafted
        ]

    def forget_rows(self, stop: int) -> None:
        """Drop the rows before position `stop`: they have been computed."""
        while self._listening and self._listening[0].position < stop:
            self._listening.popleft()

    def commit(self, token_ids: Sequence[int]) -> tuple[int, int]:
        """Move behind tokens that the model has confirmed or chosen.

        Returns how many decisions of the last draft were reached, and how many it had right.
        """
        num_reached = num_right = 0
        if self._ahead is not None:
            guessed = self._ahead.token_ids
            for decision in self._ahead.decisions:
                if decision.offset < min(len(token_ids), len(guessed)):
                    num_reached += 1
                    num_right += token_ids[decision.offset] == guessed[decision.offset]
        self._move(token_ids)
        return num_reached, num_right

    def _move(self, token_ids: Sequence[int]) -> None:
        self._constraint.advance_all(token_ids)
        self._num_tokens += len(token_ids)
        self._ahead = None
        self._is_forced_taken = False
