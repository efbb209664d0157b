"""The constraint of a merge for canonical tokens, which may span lines and decisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from lookup.byte_tokens import ByteTokens, Encode, TokenOptions
from lookup.constraint import ConstrainedDraft, DecisionRow
from lookup.grammar_error import InvalidRulesError, TokenNotAllowedError
from lookup.merge_automaton import MergeAutomaton, Threads
from lookup.merge_choices import MergeChoice, choices_at_stake, thread_choices
from lookup.merge_grammar import MergeCandidate
from lookup.merge_prediction import branches, heaviest_thread, predict
from lookup.merge_rules import MergeRules
from lookup.vocabulary_index import VocabularyIndex

BYTES_PER_TOKEN = 4


class ByteState(NamedTuple):
    """A position: threads over bytes, and how many end tokens are written."""

    threads: Threads
    num_ended: int


class ByteMergeGrammar:
    """A `Constraint` over tokens whose bytes go along valid merges.

    A token is allowed if its bytes continue what was written along any valid merge, over borders
    of lines and decisions alike. Where the text is forced its canonical tokens are drafted, and
    taken for forced as far as no token reaches from there over the next decision; the model may
    still write the text in any other allowed way.
    """

    __slots__ = ("_automaton", "_end_token_ids", "_state", "_tokens", "_vocabulary")

    def __init__(
        self,
        rules: MergeRules,
        vocabulary: VocabularyIndex,
        *,
        encode: Encode,
        end_token_ids: Sequence[int] = (),
        opening: bytes = b"",
    ) -> None:
        """`rules` are over bytes: lines, and as their end the text that closes the answer.

        `encode` gives the canonical tokens of UTF-8 text that is cut between characters.
        `end_token_ids` are control tokens behind all text. `opening` is text of the answer that
        the prompt already holds, or that is not wanted, such as the newline of the first line;
        merges that do not begin with it are not valid. Raises `GrammarError`, and
        `InvalidRulesError` also if the vocabulary cannot spell every byte.
        """
        missing = vocabulary.missing_bytes(_bytes_in(rules))
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
        self._end_token_ids = tuple(end_token_ids)
        self._state = ByteState(self._automaton.follow(self._automaton.start, opening), 0)

    @property
    def is_complete(self) -> bool:
        """Whether a valid merge, end tokens included, ends here."""
        threads, num_ended = self._state
        return num_ended == len(self._end_token_ids) and self._automaton.is_complete(threads)

    @property
    def is_border(self) -> bool:
        """Whether the next drafted token enters or leaves a segment."""
        if self._state.num_ended:
            return False
        token_ids = self.draft(1).token_ids
        length = len(self._vocabulary.bytes_of(token_ids[0])) if token_ids else 0
        return bool(predict(self._automaton, self._state.threads, length).border_offsets)

    @property
    def num_paths_left(self) -> int:
        """How many ways are left to place what is open; several may write the same text."""
        return self._automaton.num_paths(self._state.threads)

    def allowed_next(self) -> tuple[int, ...]:
        """The ids, ascending, of all tokens that go along a valid merge."""
        return self._options(self._state).token_ids

    def forced_bytes(self, max_bytes: int | None = None) -> bytes:
        """The text up to the next decision or the end of the text, at most `max_bytes`."""
        return bytes(self._automaton.forced(self._state.threads, max_bytes)[0])

    def log_prior(self) -> tuple[float, ...]:
        """None: a token may reach over a decision, and the model's own judgement stands."""
        return ()

    def forced_run(self, max_tokens: int | None = None) -> list[int]:
        """Canonical tokens of forced text, up to the first from which a decision is in reach."""
        draft = self.draft(max_tokens)
        return list(draft.token_ids[: draft.num_forced])

    def draft(self, max_tokens: int | None = None) -> ConstrainedDraft:
        """At most `max_tokens` canonical tokens along the heaviest path that is still possible.

        A decision is a position from which a token, canonical or not, makes a choice of text.
        """
        threads, num_ended = self._state
        if num_ended:
            rest = self._end_token_ids[num_ended:]
            token_ids = rest[:max_tokens]
            return ConstrainedDraft(token_ids, is_complete=token_ids == rest)
        max_bytes = None
        if max_tokens is not None:
            max_bytes = max_tokens * BYTES_PER_TOKEN + self._tokens.look_ahead_bytes
        while True:
            text = predict(self._automaton, threads, max_bytes)
            spelled = self._tokens.spell(bytes(text.token_ids), is_whole=text.is_complete)
            is_enough = max_tokens is not None and len(spelled) >= max_tokens
            if max_bytes is None or text.is_complete or is_enough:
                return self._draft_along(text, spelled, max_tokens)
            max_bytes *= 2

    def advance(self, token_id: int) -> None:
        """Move behind `token_id`. Raises `TokenNotAllowedError`, and moves not at all."""
        self._state = self._behind(self._state, token_id)

    def advance_all(self, token_ids: Sequence[int]) -> None:
        """Move behind all of `token_ids`. Raises `TokenNotAllowedError`, and moves not at all."""
        state = self._state
        for token_id in token_ids:
            state = self._behind(state, token_id)
        self._state = state

    def snapshot(self) -> ByteState:
        """The position, immutable."""
        return self._state

    def restore(self, state: ByteState) -> None:
        """Return to a position that `snapshot` of this grammar gave."""
        self._state = state

    def alternatives(self, token_id: int) -> tuple[MergeChoice, ...]:
        """What an allowed token stands for: the choices that are made or still open behind it.

        Only what is at stake here: segments whose placements are not the same behind every
        allowed token, and optional lines. A token that ends before the next choice of text leaves
        all of it open.
        """
        allowed = self.allowed_next()
        if token_id not in allowed:
            return ()
        ways = [self._behind(self._state, other).threads for other in allowed]
        return choices_at_stake(self._automaton, ways)[allowed.index(token_id)]

    def candidates_at_decision(self, max_tokens_each: int) -> tuple[MergeCandidate, ...]:
        """Every different way on, at most `max_tokens_each` tokens long, heaviest first.

        Each begins with what is forced up to the next decision, if that is in reach of a token.
        """
        look_ahead = self._tokens.look_ahead_bytes
        forced, threads = self._automaton.forced(self._state.threads, look_ahead)
        max_bytes = max_tokens_each * BYTES_PER_TOKEN + look_ahead
        found: dict[tuple[int, ...], tuple[float, Threads]] = {}
        for way in branches(self._automaton, threads, max_bytes):
            is_whole = len(way.token_ids) < max_bytes
            spelled = self._tokens.spell(bytes((*forced, *way.token_ids)), is_whole=is_whole)
            ended = self._end_token_ids[self._state.num_ended :] if is_whole else ()
            token_ids = (*spelled, *ended)[:max_tokens_each]
            weight, alike = found.get(token_ids, (way.weight, ()))
            found[token_ids] = (weight, (*alike, *way.threads))
        at_stake = choices_at_stake(self._automaton, [alike for _, alike in found.values()])
        return tuple(
            MergeCandidate(token_ids, weight, choices)
            for (token_ids, (weight, _)), choices in zip(found.items(), at_stake, strict=True)
        )

    def chosen(self) -> tuple[MergeChoice, ...]:
        """The choices behind what was written, in order; of several readings the heaviest's.

        If the text may end here, only readings that end count.
        """
        threads = self._state.threads
        ended = tuple(thread for thread in threads if thread.position == thread.stop)
        return thread_choices(self._automaton, heaviest_thread(self._automaton, ended or threads))

    def _options(self, state: ByteState) -> TokenOptions:
        """The tokens allowed at a position, end tokens included."""
        threads, num_ended = state
        if num_ended:
            return TokenOptions(self._end_token_ids[num_ended : num_ended + 1], False)
        token_ids, is_choice = self._tokens.options(threads)
        if self._automaton.is_complete(threads):
            token_ids = tuple(sorted((*token_ids, *self._end_token_ids[:1])))
        return TokenOptions(token_ids, is_choice)

    def _behind(self, state: ByteState, token_id: int) -> ByteState:
        """The position behind an allowed token."""
        threads, num_ended = state
        spelling = self._vocabulary.bytes_of(token_id)
        if spelling and not num_ended:
            try:
                return ByteState(self._automaton.follow(threads, spelling), 0)
            except TokenNotAllowedError as error:
                message = f"token {token_id}, {spelling!r}, is not allowed; of its bytes: {error}"
                raise TokenNotAllowedError(message) from error
        ended = tuple(thread for thread in threads if thread.position == thread.stop)
        if not ended or self._end_token_ids[num_ended : num_ended + 1] != (token_id,):
            raise TokenNotAllowedError(
                f"token {token_id} is not allowed; {num_ended} of {len(self._end_token_ids)} "
                "end tokens are written"
            )
        return ByteState(ended, num_ended + 1)

    def _draft_along(
        self, text: ConstrainedDraft, spelled: list[int], max_tokens: int | None
    ) -> ConstrainedDraft:
        """The draft of a predicted text, given over bytes, that `spelled` begins with or is."""
        kept = spelled[:max_tokens]
        lengths = (len(self._vocabulary.bytes_of(token_id)) for token_id in kept)
        starts = list(accumulate(lengths, initial=0))
        decisions = tuple(self._decisions(text, starts))
        entered = {bisect_right(starts, at) - 1 for at in text.border_offsets if at < starts[-1]}
        entered.difference_update(decision.offset for decision in decisions)
        whole = (*spelled, *(self._end_token_ids if text.is_complete else ()))
        return ConstrainedDraft(
            token_ids=whole[:max_tokens],
            decisions=decisions,
            border_offsets=tuple(sorted(entered)),
            is_complete=text.is_complete and (max_tokens is None or len(whole) <= max_tokens),
        )

    def _decisions(self, text: ConstrainedDraft, starts: list[int]) -> Iterator[DecisionRow]:
        """The positions, of tokens that begin at bytes `starts`, from which a choice is made."""
        written = bytes(text.token_ids)
        choices = [decision.offset for decision in text.decisions]
        threads, at = self._state.threads, 0
        for offset, start in enumerate(starts):
            next_choice = bisect_left(choices, start)
            if next_choice == len(choices):
                return
            if self._tokens.reaches(written, start, choices[next_choice]):
                threads, at = self._automaton.follow(threads, written[at:start]), start
                token_ids, is_choice = self._options(ByteState(threads, 0))
                if is_choice:
                    yield DecisionRow(offset, token_ids)


def _bytes_in(rules: MergeRules) -> set[int]:
    """Every byte that an answer may hold."""
    found = set(rules.end_token_ids).union(*rules.original)
    for segment in rules.segments:
        for placement in segment.placements:
            found.update(*placement.lines)
    return found
