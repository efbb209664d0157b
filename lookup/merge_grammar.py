"""The constraint of a merge: the model chooses among valid merges, token by token."""

from __future__ import annotations

from collections.abc import Sequence

from lookup.constraint import ConstrainedDraft
from lookup.merge_automaton import MergeAutomaton, MergeDecision, Position
from lookup.merge_rules import MergeRules


class MergeGrammar:
    """A `Constraint` whose valid answers are the texts of the rules. Of equal texts one counts."""

    __slots__ = ("_automaton", "_position")

    def __init__(self, rules: MergeRules) -> None:
        """Raises `InvalidRulesError`."""
        self._automaton = MergeAutomaton(rules)
        self._position = self._automaton.start

    @property
    def is_complete(self) -> bool:
        """True if a valid merge ends here."""
        return self._automaton.is_complete(self._position)

    @property
    def is_border(self) -> bool:
        """True if a text leaves the original here, or returns to it."""
        return bool(self._automaton.border_offsets(self._position, 1))

    def allowed_next(self) -> tuple[int, ...]:
        """The ids, ascending, of the tokens that continue a valid merge."""
        return tuple(self._automaton.behind(self._position))

    def log_prior(self) -> tuple[float, ...]:
        """The scaled weights of the heaviest merges behind each of `allowed_next()`.

        Empty if the rules' `prior_scale` is 0.
        """
        ways = self._automaton.behind(self._position).values()
        return self._automaton.log_prior([Position(0, texts) for texts in ways])

    def forced_run(self, max_tokens: int | None = None) -> list[int]:
        """The tokens up to the next decision or the end, at most `max_tokens`."""
        return self._automaton.forced(self._position, max_tokens)[0]

    def draft(self, max_tokens: int | None = None) -> ConstrainedDraft:
        """At most `max_tokens` tokens along the heaviest merge that is still possible."""
        return self._automaton.predict(self._position, max_tokens)

    def advance(self, token_id: int) -> None:
        """Move behind `token_id`. Raises `TokenNotAllowedError` without any move."""
        self._position = self._automaton.follow(self._position, (token_id,))

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind all of `token_ids`. Raises `TokenNotAllowedError` without any move."""
        self._position = self._automaton.follow(self._position, token_ids)

    def snapshot(self) -> Position:
        """The position, immutable."""
        return self._position

    def restore(self, state: Position) -> None:
        """Return to a position that `snapshot` of this grammar gave."""
        self._position = state

    def chosen(self) -> int:
        """The number of the text written so far; of several the heaviest.

        If the answer may end here, only texts that end count.
        """
        ended = self._automaton.ended(self._position)
        return self._automaton.heaviest(ended if ended.texts else self._position)

    def decisions(self, token_ids: Sequence[int]) -> list[MergeDecision]:
        """The decisions in an answer, or in its beginning, read from the start.

        Moves nothing. Raises `TokenNotAllowedError`.
        """
        found: list[MergeDecision] = []
        position = self._automaton.start
        while position.offset < len(token_ids):
            offset = position.offset
            run = self._automaton.common_run(position, len(token_ids) - offset)
            if not run:
                ways = tuple(self._automaton.behind(position).items())
                found.append(MergeDecision(offset, token_ids[offset], ways))
            end = offset + max(1, len(run))
            position = self._automaton.follow(position, token_ids[offset:end])
        return found
