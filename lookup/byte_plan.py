"""The canonical tokens of forced text, up to the first token that may make a choice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from lookup.byte_tokens import NO_OPTIONS, ByteTokens, TokenOptions
from lookup.merge_automaton import MergeAutomaton, Threads
from lookup.merge_prediction import predict
from lookup.vocabulary_index import VocabularyIndex

# A longer forced text is planned in pieces.
MAX_PLANNED_BYTES = 8192


@dataclass(frozen=True, slots=True, eq=False)
class BytePlan:
    """What is forced from a position on, and what may be written behind it.

    `border_offsets` are those of `token_ids` that hold a border. `options` are the tokens from
    which one is to be chosen behind them, `likeliest` the one on the heaviest path; there are none
    at the end of all text and where the plan breaks off because the text is long. With `is_end` a
    valid text ends behind the tokens; if there are options as well, ending is one of them.
    """

    token_ids: tuple[int, ...]
    border_offsets: tuple[int, ...] = ()
    options: TokenOptions = NO_OPTIONS
    likeliest: int | None = None
    is_end: bool = False


class BytePlanner:
    """Plans depend on the position alone, so whoever reads on in other steps reads the same."""

    __slots__ = ("_automaton", "_tokens", "_vocabulary")

    def __init__(
        self, automaton: MergeAutomaton, vocabulary: VocabularyIndex, tokens: ByteTokens
    ) -> None:
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._tokens = tokens

    def plan(self, threads: Threads, unread: bytes) -> BytePlan:
        """The plan of a position behind which `unread` and then a merge along `threads` comes."""
        text, choice, is_whole = self._text(threads, unread)
        spelled = self._tokens.spell(text, is_whole=is_whole)
        starts = [*accumulate(map(len, map(self._vocabulary.bytes_of, spelled)), initial=0)]
        for offset, start in enumerate(starts):
            if not self._tokens.reaches(text, start, choice):
                continue
            behind, rest = self.follow(threads, unread, text[:start])
            options = self._tokens.options(behind, rest)
            if options.is_choice:
                return BytePlan(
                    tuple(spelled[:offset]),
                    self._borders(threads, len(unread), starts[: offset + 1]),
                    options,
                    spelled[offset] if offset < len(spelled) else None,
                    not rest and self._automaton.is_complete(behind),
                )
        return BytePlan(
            tuple(spelled), self._borders(threads, len(unread), starts), is_end=is_whole
        )

    def follow(self, threads: Threads, unread: bytes, written: bytes) -> tuple[Threads, bytes]:
        """Where one stands behind `written`. Raises `TokenNotAllowedError`."""
        both = min(len(unread), len(written))
        if unread[:both] != written[:both]:
            raise self._tokens.refusal(written, unread)
        return self._automaton.follow(threads, written[both:]), unread[both:]

    def _text(self, threads: Threads, unread: bytes) -> tuple[bytes, int, bool]:
        """Text on the heaviest path; where in it the first choice is; whether it is whole.

        It goes on behind the choice, as far as the tokens before the choice may depend on it.
        """
        room = MAX_PLANNED_BYTES - len(unread)
        forced, behind = self._automaton.forced(threads, room)
        ahead = predict(self._automaton, behind, 2 * self._tokens.look_ahead_bytes)
        text = bytes((*unread, *forced, *ahead.token_ids))
        choice = len(text) + self._tokens.look_ahead_bytes
        if ahead.decisions:
            choice = len(unread) + len(forced) + ahead.decisions[0].offset
        return text, choice, ahead.is_complete

    def _borders(self, threads: Threads, num_unread: int, starts: list[int]) -> tuple[int, ...]:
        """Which of the tokens that begin at `starts`, their end the last of these, hold borders."""
        length = starts[-1] - num_unread
        found = predict(self._automaton, threads, length).border_offsets if length > 0 else ()
        places = {num_unread + place for place in found}
        return tuple(
            offset
            for offset, (start, end) in enumerate(pairwise(starts))
            if any(place in places for place in range(start, end))
        )
