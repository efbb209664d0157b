"""Constrains an answer to the merges of an edit, for tokens that may span lines and decisions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from lookup.byte_plan import BytePlan, BytePlanner, ByteTokens, Encode
from lookup.constraint import ConstrainedDraft, DecisionRow, InvalidRulesError, TokenNotAllowedError
from lookup.merge_automaton import MergeAutomaton, MergeDecision, Position
from lookup.merge_rules import MergeRules
from lookup.vocabulary_index import VocabularyIndex

MAX_PLANS = 1024


class ByteState(NamedTuple):
    """A position: text before the merge, the position in the merge's bytes, end tokens written.

    `place` is the number of tokens of `plan` that are written; `plan` is None until one is made.
    """

    position: Position
    unread: bytes
    num_ended: int = 0
    plan: BytePlan | None = None
    place: int = 0


class ByteMergeGrammar:
    """A `Constraint` over tokens whose bytes go along valid merges.

    Forced text allows only its canonical tokens, as far as no token reaches from there over the
    next decision; these tokens depend on the position alone. At a decision a token is allowed if
    its bytes continue what was written along any valid merge, over borders of lines and further
    decisions alike. `advance` takes any token along a valid merge, so that text which was tokenised
    otherwise can be followed.
    """

    __slots__ = (
        "_automaton",
        "_end_token_ids",
        "_ends",
        "_likeliest_states",
        "_planner",
        "_plans",
        "_start",
        "_state",
        "_tokens",
        "_vocabulary",
    )

    def __init__(
        self,
        rules: MergeRules,
        vocabulary: VocabularyIndex,
        *,
        encode: Encode,
        end_token_ids: Sequence[int] = (),
        opening: bytes = b"",
        skipped: bytes = b"",
    ) -> None:
        """`rules` are over bytes, and their end is the text that closes the answer.

        `encode` gives the canonical tokens of UTF-8 text that is cut between characters.
        `end_token_ids` are control tokens behind all text. `opening` is text that the answer has
        before the merge. `skipped` is text at the head of every merge that the answer does not
        have, such as the newline of the first line; merges that do not begin with it are not valid.
        Raises `GrammarError`, and `InvalidRulesError` also if the vocabulary cannot spell every
        byte.
        """
        missing = vocabulary.missing_bytes(_bytes_in(rules).union(opening))
        if missing:
            raise InvalidRulesError(
                f"no token spells byte {missing[0]:#04x} alone ({len(missing)} such bytes); "
                "substitute it, or take a tokenizer with byte fallback"
            )
        spelled = [token_id for token_id in end_token_ids if vocabulary.bytes_of(token_id)]
        if spelled:
            raise InvalidRulesError(
                f"end token {spelled[0]} spells text; put that text at the end of the rules"
            )
        self._automaton = MergeAutomaton(rules)
        self._vocabulary = vocabulary
        self._tokens = ByteTokens(self._automaton, vocabulary, encode)
        self._planner = BytePlanner(self._automaton, vocabulary, self._tokens)
        self._plans: dict[tuple[Position, bytes], BytePlan] = {}
        self._ends: dict[BytePlan, ByteState] = {}
        self._likeliest_states: dict[BytePlan, ByteState] = {}
        self._end_token_ids = tuple(end_token_ids)
        self._start = ByteState(self._automaton.follow(self._automaton.start, skipped), opening)
        self._state = self._start

    @property
    def is_complete(self) -> bool:
        """True if a valid merge, end tokens included, ends here."""
        state = self._state
        return state.num_ended == len(self._end_token_ids) and self._is_text_complete(state)

    @property
    def is_border(self) -> bool:
        """True if the next token is forced and enters or leaves a segment."""
        state = self._planned(self._state)
        return state.plan is not None and state.place in state.plan.border_offsets

    def allowed_next(self) -> tuple[int, ...]:
        """The ids, ascending, of the allowed tokens: of forced text the canonical one alone."""
        return self._allowed(self._planned(self._state))

    def log_prior(self) -> tuple[float, ...]:
        """The scaled weights of the heaviest merges behind each of `allowed_next()`.

        The largest is 0, also of tokens that leave the choice open. Empty if the rules'
        `prior_scale` is 0.
        """
        state = self._planned(self._state)
        return self._log_prior(state, self._allowed(state))

    def forced_run(self, max_tokens: int | None = None) -> list[int]:
        """Canonical tokens of forced text, up to the first from which a decision is in reach."""
        room = sys.maxsize if max_tokens is None else max_tokens
        written: list[int] = []
        state = self._planned(self._state)
        while run := self._forced(state)[: room - len(written)]:
            written += run
            state = self._planned(self._move(state, len(run)))
        return written

    def draft(self, max_tokens: int | None = None) -> ConstrainedDraft:
        """At most `max_tokens` canonical tokens along the heaviest path that is still possible.

        A decision is a position from which a token, canonical or not, makes a choice of text.
        """
        room = sys.maxsize if max_tokens is None else max_tokens
        written: list[int] = []
        decisions: list[DecisionRow] = []
        borders: list[int] = []
        state = self._planned(self._state)
        while True:
            offset = len(written)
            if run := self._forced(state)[: room - offset]:
                borders += self._borders(state, offset, len(run))
                written += run
                state = self._planned(self._move(state, len(run)))
                continue
            allowed = self._allowed(state)
            if self._is_decision(state):
                decisions.append(DecisionRow(offset, allowed, self._log_prior(state, allowed)))
            likeliest = self._likeliest(state)
            if likeliest is None or offset == room:
                break
            written.append(likeliest)
            state = self._behind_likeliest(state, likeliest)
        is_complete = likeliest is None and not self._forced(state)
        return ConstrainedDraft(tuple(written), tuple(decisions), tuple(borders), is_complete)

    def advance(self, token_id: int) -> None:
        """Move behind `token_id`. Raises `TokenNotAllowedError` without any move."""
        self._state = self._behind(self._planned(self._state), token_id)

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind all of `token_ids`. Raises `TokenNotAllowedError` without any move."""
        state = self._state
        num_read = 0
        while num_read < len(token_ids):
            state = self._planned(state)
            run = self._forced(state)[: len(token_ids) - num_read]
            if run and tuple(token_ids[num_read : num_read + len(run)]) == run:
                state = self._move(state, len(run))
                num_read += len(run)
            else:
                state = self._behind(state, token_ids[num_read])
                num_read += 1
        self._state = state

    def snapshot(self) -> ByteState:
        """The position, immutable."""
        return self._state

    def restore(self, state: ByteState) -> None:
        """Return to a position that `snapshot` of this grammar gave."""
        self._state = state

    def chosen(self) -> int:
        """The number of the text written so far; of several the heaviest.

        If the answer may end here, only texts that end count.
        """
        ended = self._automaton.ended(self._state.position)
        return self._automaton.heaviest(ended if ended.texts else self._state.position)

    def decisions(self, token_ids: Sequence[int]) -> list[MergeDecision]:
        """The decisions in an answer, or in its beginning, read from the start.

        Moves nothing. Raises `TokenNotAllowedError`.
        """
        found: list[MergeDecision] = []
        state = self._start
        for offset, token_id in enumerate(token_ids):
            state = self._planned(state)
            if self._is_decision(state):
                found.append(MergeDecision(offset, token_id, self._alternatives(state)))
            state = self._behind(state, token_id)
        return found

    def _planned(self, state: ByteState) -> ByteState:
        """The same position with its plan, unless all text is written."""
        plan = state.plan
        if state.num_ended or (plan and (state.place < len(plan.token_ids) or _is_open(plan))):
            return state
        key = (state.position, state.unread)
        made = self._plans.get(key)
        if made is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
                self._ends.clear()
                self._likeliest_states.clear()
            made = self._plans[key] = self._planner.plan(*key)
        return ByteState(*key, plan=made)

    def _forced(self, state: ByteState) -> tuple[int, ...]:
        """The forced tokens at a planned position, up to the end of its plan."""
        if state.num_ended:
            return self._end_token_ids[state.num_ended :]
        assert state.plan is not None, "the position was planned"
        rest = state.plan.token_ids[state.place :]
        is_over = not rest and state.plan.is_end and not state.plan.options.token_ids
        return self._end_token_ids if is_over else rest

    def _is_decision(self, state: ByteState) -> bool:
        """True if a planned position allows several tokens, or both an end and a token."""
        if state.num_ended or state.plan is None or state.place < len(state.plan.token_ids):
            return False
        return bool(state.plan.options.token_ids)

    def _likeliest(self, state: ByteState) -> int | None:
        """The token on the heaviest path at a decision; None where nothing more is written."""
        if not self._is_decision(state) or state.plan is None:
            return None
        if state.plan.likeliest is None:
            return self._end_token_ids[0] if self._end_token_ids else None
        return state.plan.likeliest

    def _allowed(self, state: ByteState) -> tuple[int, ...]:
        """The tokens allowed at a planned position, end tokens included."""
        if not self._is_decision(state):
            return self._forced(state)[:1]
        assert state.plan is not None, "a decision is part of a plan"
        ends = self._end_token_ids[:1] if state.plan.is_end else ()
        return tuple(sorted((*state.plan.options.token_ids, *ends)))

    def _borders(self, state: ByteState, offset: int, length: int) -> list[int]:
        """Borders among the next `length` forced tokens, `offset` behind the present position."""
        if state.plan is None:
            return []
        places = (place - state.place for place in state.plan.border_offsets)
        return [offset + place for place in places if 0 <= place < length]

    def _log_prior(self, state: ByteState, allowed: Sequence[int]) -> tuple[float, ...]:
        if not self._automaton.prior_scale:
            return ()
        return self._automaton.log_prior(
            [self._behind(state, token_id).position for token_id in allowed]
        )

    def _alternatives(self, state: ByteState) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The tokens allowed at a planned position, each with the texts behind it."""
        return tuple(
            (token_id, self._behind(state, token_id).position.texts)
            for token_id in self._allowed(state)
        )

    def _move(self, state: ByteState, num_forced: int) -> ByteState:
        """The position behind the next forced tokens, which the plan must hold."""
        plan = None if state.num_ended else state.plan
        is_last = plan is not None and 0 < len(plan.token_ids) == state.place + num_forced
        if plan is not None and is_last and plan in self._ends:
            return self._ends[plan]
        moved = self._followed(state, num_forced)
        if plan is not None and is_last:
            self._ends[plan] = moved
        return moved

    def _behind_likeliest(self, state: ByteState, likeliest: int) -> ByteState:
        """The planned position behind the likeliest token of a decision, found once."""
        plan = state.plan
        assert plan is not None, "a decision is part of a plan"
        known = self._likeliest_states.get(plan)
        if known is None:
            known = self._planned(self._behind(state, likeliest))
            self._likeliest_states[plan] = known
        return known

    def _followed(self, state: ByteState, num_forced: int) -> ByteState:
        run = self._forced(state)[:num_forced]
        spelled = b"".join(map(self._vocabulary.bytes_of, run))
        if not spelled:
            num_ended = state.num_ended + num_forced
            return ByteState(self._automaton.ended(state.position), state.unread, num_ended)
        behind = self._planner.follow(state.position, state.unread, spelled)
        return ByteState(*behind, plan=state.plan, place=state.place + num_forced)

    def _behind(self, state: ByteState, token_id: int) -> ByteState:
        """The position behind any token that goes along a valid merge from a planned position."""
        if self._forced(state)[:1] == (token_id,):
            return self._move(state, 1)
        spelling = self._vocabulary.bytes_of(token_id)
        if spelling and not state.num_ended:
            try:
                return ByteState(*self._planner.follow(state.position, state.unread, spelling))
            except TokenNotAllowedError as error:
                message = f"token {token_id}, {spelling!r}, is not allowed; of its bytes: {error}"
                raise TokenNotAllowedError(message) from error
        ended = self._end_token_ids[state.num_ended : state.num_ended + 1]
        if ended != (token_id,) or not self._is_text_complete(state):
            raise TokenNotAllowedError(
                f"token {token_id} is not allowed; {state.num_ended} of "
                f"{len(self._end_token_ids)} end tokens are written"
            )
        return ByteState(self._automaton.ended(state.position), b"", state.num_ended + 1)

    def _is_text_complete(self, state: ByteState) -> bool:
        return not state.unread and self._automaton.is_complete(state.position)


def _is_open(plan: BytePlan) -> bool:
    """True if a plan says what follows its tokens: a choice, or the end."""
    return plan.is_end or bool(plan.options.token_ids)


def _bytes_in(rules: MergeRules) -> set[int]:
    """Every byte that an answer may hold."""
    return set(rules.end_token_ids).union(*(text.symbols for text in rules.texts))
