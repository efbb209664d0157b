"""The constraint of a merge: the model chooses among valid merges, token by token."""

from __future__ import annotations

from collections.abc import Sequence

from lookup.constraint import ConstrainedDraft
from lookup.merge_automaton import MergeAutomaton, Threads
from lookup.merge_choices import (
    MergeChoice,
    MergeDecision,
    choices_by_token,
    decisions_of,
    thread_choices,
)
from lookup.merge_prediction import heaviest_thread, log_prior, predict
from lookup.merge_rules import MergeRules


class MergeGrammar:
    """A `Constraint` whose valid answers are the merges that the rules allow.

    Readings of the text so far that differ in their placements, but not in text or in what can
    follow, count as one, the heavier. A forced run costs by the number of places at which
    a segment may be entered, not by the number of its tokens.
    """

    __slots__ = ("_automaton", "_threads")

    def __init__(self, rules: MergeRules) -> None:
        """Raises `InvalidRulesError`, or `NoPathError` if not all segments can be placed."""
        self._automaton = MergeAutomaton(rules)
        self._threads = self._automaton.start

    @property
    def is_complete(self) -> bool:
        """True if a valid merge ends here."""
        return self._automaton.is_complete(self._threads)

    @property
    def is_border(self) -> bool:
        """True if a segment is entered or left here, its context at both ends not counted.

        The border is the first token that differs from the original going on unchanged.
        """
        return bool(self._automaton.border_offsets(self._threads, 1))

    def allowed_next(self) -> tuple[int, ...]:
        """The ids, ascending, of the tokens that continue a valid merge."""
        return tuple(self._automaton.allowed(self._threads))

    def log_prior(self) -> tuple[float, ...]:
        """The scaled weights of the heaviest merges behind each of `allowed_next()`.

        Empty if the rules' `prior_scale` is 0.
        """
        return log_prior(self._automaton, self._threads, self.allowed_next())

    def forced_run(self, max_tokens: int | None = None) -> list[int]:
        """The tokens up to the next decision or the end, at most `max_tokens`."""
        return self._automaton.forced(self._threads, max_tokens)[0]

    def draft(self, max_tokens: int | None = None) -> ConstrainedDraft:
        """At most `max_tokens` tokens along the heaviest path that is still possible."""
        return predict(self._automaton, self._threads, max_tokens)

    def advance(self, token_id: int) -> None:
        """Move behind `token_id`. Raises `TokenNotAllowedError` without any move."""
        self._threads = self._automaton.follow(self._threads, (token_id,))

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind all of `token_ids`. Raises `TokenNotAllowedError` without any move."""
        self._threads = self._automaton.follow(self._threads, token_ids)

    def snapshot(self) -> Threads:
        """The position, immutable."""
        return self._threads

    def restore(self, state: Threads) -> None:
        """Return to a position that `snapshot` of this grammar gave."""
        self._threads = state

    def alternatives(self, token_id: int) -> tuple[MergeChoice, ...]:
        """The meaning of an allowed token: the choices made or still open behind it.

        Only the choices at stake here: segments whose placements are not the same behind every
        allowed token, and optional lines. Empty if there is no decision.
        """
        return choices_by_token(self._automaton, self._threads).get(token_id, ())

    def chosen(self) -> tuple[MergeChoice, ...]:
        """The choices behind the text so far, in order; of several readings the heaviest's.

        If the answer may end here, only readings that end count.
        """
        ended = tuple(thread for thread in self._threads if thread.position == thread.stop)
        heaviest = heaviest_thread(self._automaton, ended or self._threads)
        return thread_choices(self._automaton, heaviest)

    def decisions(self, token_ids: Sequence[int]) -> list[MergeDecision]:
        """The decisions in an answer, or in its beginning, read from the start.

        Moves nothing. Raises `TokenNotAllowedError`.
        """
        return decisions_of(self._automaton, token_ids)
