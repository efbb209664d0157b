"""Relates text to canonical tokens: the tokens along a merge, and the spelling of text.

A plan has the canonical tokens of forced text, up to the first token that may make a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from lookup.constraint import TokenNotAllowedError
from lookup.merge_automaton import MergeAutomaton, Position
from lookup.vocabulary_index import PrefixRange, VocabularyIndex

# A longer forced text is planned in pieces.
MAX_PLANNED_BYTES = 8192
MIN_LOOK_AHEAD_BYTES = 32
Encode = Callable[[bytes], Sequence[int]]


class TokenOptions(NamedTuple):
    """The allowed tokens, ascending, and whether any of them makes a choice of text."""

    token_ids: tuple[int, ...]
    is_choice: bool


NO_OPTIONS = TokenOptions((), False)


class ByteTokens:
    """The tokens of one vocabulary, read along an automaton over bytes."""

    __slots__ = ("_automaton", "_encode", "_vocabulary", "look_ahead_bytes")

    def __init__(
        self, automaton: MergeAutomaton, vocabulary: VocabularyIndex, encode: Encode
    ) -> None:
        """`look_ahead_bytes` is how far text behind a token may change its spelling."""
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._encode = encode
        self.look_ahead_bytes = max(MIN_LOOK_AHEAD_BYTES, vocabulary.max_token_bytes)

    def options(self, position: Position, unread: bytes = b"") -> TokenOptions:
        """The tokens whose bytes continue with `unread` and then along any valid merge."""
        has_chosen = dict(self._walk(position, unread))
        return TokenOptions(tuple(sorted(has_chosen)), any(has_chosen.values()))

    def spell(self, text: bytes, *, is_whole: bool) -> list[int]:
        """Canonical tokens of `text`; unless it is whole, without those that later text may change.

        Where the tokenizer does not give the text back, the longest tokens that match are taken.
        """
        head = 0
        while head < len(text) and _is_inside_character(text[head]):
            head += 1
        end = len(text) if is_whole else _character_border(text)
        token_ids = self._vocabulary.longest_matches(text[:head])
        token_ids += self._encode(text[head:end]) if head < end else ()
        kept = self._agreeing(token_ids, text)
        if is_whole or len(kept) < len(token_ids):
            spelled = sum(len(self._vocabulary.bytes_of(token_id)) for token_id in kept)
            kept += self._vocabulary.longest_matches(text[spelled:])
        if is_whole:
            return kept
        lengths = (len(self._vocabulary.bytes_of(token_id)) for token_id in kept)
        last = len(text) - self.look_ahead_bytes
        return kept[: sum(behind <= last for behind in accumulate(lengths))]

    def reaches(self, text: bytes, start: int, decision: int) -> bool:
        """True if any token that begins at `start` may reach beyond the byte at `decision`."""
        if decision - start >= self._vocabulary.max_token_bytes:
            return False
        return self._vocabulary.has_longer(text[start:decision])

    def refusal(self, written: bytes, unread: bytes) -> TokenNotAllowedError:
        """The error for text other than the text that has to come first."""
        return TokenNotAllowedError(
            f"{written!r} is not allowed; the answer begins with {unread!r}"
        )

    def _walk(self, position: Position, unread: bytes) -> Iterator[tuple[int, bool]]:
        """Every token along a valid merge, and whether its bytes hold a choice.

        A token behind `unread` is a choice too where a merge may end there.
        """
        automaton, vocabulary = self._automaton, self._vocabulary
        start: PrefixRange | None = vocabulary.root
        for byte in unread[: vocabulary.max_token_bytes]:
            start = None if start is None else vocabulary.extend(start, byte)
            if start is not None:
                yield from ((token_id, False) for token_id in vocabulary.spelled(start))
        is_read = len(unread) < vocabulary.max_token_bytes
        may_end = automaton.is_complete(position)
        pending = [(start, position, may_end)] if start is not None and is_read else []
        while pending:
            prefix, position, has_chosen = pending.pop()
            run = automaton.common_run(position, vocabulary.max_token_bytes - prefix.length)
            longer: PrefixRange | None = prefix
            for byte in run:
                longer = vocabulary.extend(prefix, byte)
                if longer is None:
                    break
                prefix = longer
                yield from ((token_id, has_chosen) for token_id in vocabulary.spelled(prefix))
            if run:
                if longer is not None and prefix.length < vocabulary.max_token_bytes:
                    pending.append((prefix, automaton.move(position, len(run)), has_chosen))
                continue
            for byte in automaton.behind(position):
                chosen = vocabulary.extend(prefix, byte)
                if chosen is not None:
                    yield from ((token_id, True) for token_id in vocabulary.spelled(chosen))
                    pending.append((chosen, automaton.follow(position, (byte,)), True))

    def _agreeing(self, token_ids: Sequence[int], text: bytes) -> list[int]:
        """The leading tokens that spell the beginning of `text`."""
        kept: list[int] = []
        at = 0
        for token_id in token_ids:
            spelling = self._vocabulary.bytes_of(token_id)
            if not spelling or not text.startswith(spelling, at):
                break
            kept.append(token_id)
            at += len(spelling)
        return kept


def _is_inside_character(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _character_border(text: bytes) -> int:
    """The last place in `text`, its end excluded, at which a character of UTF-8 begins."""
    at = max(0, len(text) - 1)
    while at > 0 and _is_inside_character(text[at]):
        at -= 1
    return at


@dataclass(frozen=True, slots=True, eq=False)
class BytePlan:
    """The text forced from a position on, and the options behind it.

    `border_offsets` are those of `token_ids` that hold a border. `options` are the tokens to choose
    from behind them, `likeliest` is the one on the heaviest path; there are none
    at the end of all text and where the plan breaks off because the text is long. With `is_end` a
    valid text ends behind the tokens; if there are options as well, ending is one of them.
    """

    token_ids: tuple[int, ...]
    border_offsets: tuple[int, ...] = ()
    options: TokenOptions = NO_OPTIONS
    likeliest: int | None = None
    is_end: bool = False


class BytePlanner:
    """Makes plans from the position alone, so different steps to it give the same reading."""

    __slots__ = ("_automaton", "_tokens", "_vocabulary")

    def __init__(
        self, automaton: MergeAutomaton, vocabulary: VocabularyIndex, tokens: ByteTokens
    ) -> None:
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._tokens = tokens

    def plan(self, position: Position, unread: bytes) -> BytePlan:
        """The plan of a position before `unread` and then a merge along `position`."""
        text, choice, is_whole = self._text(position, unread)
        spelled = self._tokens.spell(text, is_whole=is_whole)
        starts = [*accumulate(map(len, map(self._vocabulary.bytes_of, spelled)), initial=0)]
        for offset, start in enumerate(starts):
            if not self._tokens.reaches(text, start, choice):
                continue
            behind, rest = self.follow(position, unread, text[:start])
            options = self._tokens.options(behind, rest)
            if options.is_choice:
                return BytePlan(
                    tuple(spelled[:offset]),
                    self._borders(position, len(unread), starts[: offset + 1]),
                    options,
                    spelled[offset] if offset < len(spelled) else None,
                    not rest and self._automaton.is_complete(behind),
                )
        return BytePlan(
            tuple(spelled), self._borders(position, len(unread), starts), is_end=is_whole
        )

    def follow(self, position: Position, unread: bytes, written: bytes) -> tuple[Position, bytes]:
        """The position behind `written`. Raises `TokenNotAllowedError`."""
        both = min(len(unread), len(written))
        if unread[:both] != written[:both]:
            raise self._tokens.refusal(written, unread)
        return self._automaton.follow(position, written[both:]), unread[both:]

    def _text(self, position: Position, unread: bytes) -> tuple[bytes, int, bool]:
        """Text on the heaviest path, the place of its first choice, and whether it is whole.

        It goes on behind the choice, as far as the tokens before the choice may depend on it.
        """
        room = MAX_PLANNED_BYTES - len(unread)
        forced, behind = self._automaton.forced(position, room)
        ahead = self._automaton.predict(behind, 2 * self._tokens.look_ahead_bytes)
        text = bytes((*unread, *forced, *ahead.token_ids))
        choice = len(text) + self._tokens.look_ahead_bytes
        if ahead.decisions:
            choice = len(unread) + len(forced) + ahead.decisions[0].offset
        return text, choice, ahead.is_complete

    def _borders(self, position: Position, num_unread: int, starts: list[int]) -> tuple[int, ...]:
        """The indexes of tokens, given by `starts` and the last one's end, that hold borders."""
        length = starts[-1] - num_unread
        found = self._automaton.predict(position, length).border_offsets if length > 0 else ()
        places = {num_unread + place for place in found}
        return tuple(
            offset
            for offset, (start, end) in enumerate(pairwise(starts))
            if any(place in places for place in range(start, end))
        )
