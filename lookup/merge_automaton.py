"""Follows all valid answers at once: the texts that agree with what is written so far.

All of them have the same beginning, so a position is one offset and the numbers of the texts that
are still possible.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lookup.constraint import ConstrainedDraft, DecisionRow, TokenNotAllowedError
from lookup.merge_rules import MergeRules

MAX_NAMED_TOKENS = 8


class Position(NamedTuple):
    """Behind `offset` symbols; `texts`, ascending, are the numbers of those that begin with them.

    Of equal texts only the heaviest has a number here.
    """

    offset: int
    texts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """A position of the answer, in tokens, that allows more than one token.

    `alternatives` are the allowed tokens, ascending, each with the numbers of the texts behind it.
    """

    offset: int
    chosen_token_id: int
    alternatives: tuple[tuple[int, tuple[int, ...]], ...]


class MergeAutomaton:
    """Pure functions over positions."""

    __slots__ = ("_borders", "_common", "_texts", "_weights", "prior_scale", "start")

    def __init__(self, rules: MergeRules) -> None:
        """Raises `InvalidRulesError`."""
        rules.check()
        end = tuple(rules.end_token_ids)
        self._texts = [(*text.symbols, *end) for text in rules.texts]
        self._weights = [text.weight for text in rules.texts]
        self._borders = [text.borders for text in rules.texts]
        self._common: dict[tuple[int, int], int] = {}
        self.prior_scale = rules.prior_scale
        heaviest: dict[tuple[int, ...], int] = {}
        for number, text in enumerate(self._texts):
            known = heaviest.setdefault(text, number)
            if self._weights[number] > self._weights[known]:
                heaviest[text] = number
        self.start = Position(0, tuple(sorted(heaviest.values())))

    def is_complete(self, position: Position) -> bool:
        """Whether a valid answer ends here."""
        return any(len(self._texts[number]) == position.offset for number in position.texts)

    def ended(self, position: Position) -> Position:
        """The position with those texts alone that end here."""
        ends = (one for one in position.texts if len(self._texts[one]) == position.offset)
        return Position(position.offset, tuple(ends))

    def behind(self, position: Position) -> dict[int, tuple[int, ...]]:
        """The allowed symbols, ascending, and the texts that go on with each."""
        found: dict[int, list[int]] = {}
        for number in position.texts:
            text = self._texts[number]
            if position.offset < len(text):
                found.setdefault(text[position.offset], []).append(number)
        return {symbol: tuple(found[symbol]) for symbol in sorted(found)}

    def common_run(self, position: Position, max_symbols: int) -> tuple[int, ...]:
        """The next symbols that all texts share; none at a decision or where a text ends."""
        if not position.texts:
            return ()
        first = position.texts[0]
        end = min(len(self._texts[first]), position.offset + max_symbols)
        for number in position.texts[1:]:
            end = min(end, self._num_common(first, number))
        return self._texts[first][position.offset : end]

    def forced(self, position: Position, max_symbols: int | None) -> tuple[list[int], Position]:
        """The symbols up to the next decision or the end, and the position behind them."""
        room = sys.maxsize - position.offset if max_symbols is None else max_symbols
        run = self.common_run(position, room)
        return list(run), self.move(position, len(run))

    def move(self, position: Position, num_shared: int) -> Position:
        """The position behind symbols that all texts share."""
        return Position(position.offset + num_shared, position.texts)

    def follow(self, position: Position, symbols: Sequence[int]) -> Position:
        """The position behind `symbols`. Raises `TokenNotAllowedError`."""
        wanted = tuple(symbols)
        end = position.offset + len(wanted)
        kept = tuple(
            one for one in position.texts if self._texts[one][position.offset : end] == wanted
        )
        if wanted and not kept:
            raise self._refusal(position, wanted)
        return Position(end, kept or position.texts)

    def heaviest(self, position: Position) -> int:
        """The heaviest text that is possible; the first of equals."""
        return max(position.texts, key=lambda number: self._weights[number])

    def log_prior(self, positions: Sequence[Position]) -> tuple[float, ...]:
        """The scaled weights of the heaviest texts at each of several positions; the largest is 0.

        Empty if the rules' `prior_scale` is 0.
        """
        if not self.prior_scale:
            return ()
        weights = [self._weights[self.heaviest(position)] for position in positions]
        largest = max(weights, default=0.0)
        return tuple(self.prior_scale * (weight - largest) for weight in weights)

    def border_offsets(self, position: Position, length: int) -> set[int]:
        """The offsets, below `length`, of the next symbols of a text that are borders."""
        start = position.offset
        return {
            place - start
            for number in position.texts
            for place in self._borders[number]
            if start <= place < start + length
        }

    def predict(self, position: Position, max_symbols: int | None) -> ConstrainedDraft:
        """At most `max_symbols` along the heaviest text, with its decisions and borders."""
        heaviest = self.heaviest(position)
        text = self._texts[heaviest]
        start = position.offset
        end = len(text) if max_symbols is None else min(len(text), start + max_symbols)
        decisions: list[DecisionRow] = []
        borders: set[int] = set()
        while True:
            run = self.common_run(position, end - position.offset)
            if run:
                offset = position.offset - start
                borders |= {offset + at for at in self.border_offsets(position, len(run))}
                position = self.move(position, len(run))
                continue
            behind = self.behind(position)
            if len(behind) > 1 or (behind and self.is_complete(position)):
                prior = self.log_prior(
                    [Position(position.offset + 1, texts) for texts in behind.values()]
                )
                decisions.append(DecisionRow(position.offset - start, tuple(behind), prior))
            if position.offset == end:
                break
            position = Position(position.offset + 1, behind[text[position.offset]])
        borders.difference_update(decision.offset for decision in decisions)
        return ConstrainedDraft(
            text[start:end], tuple(decisions), tuple(sorted(borders)), end == len(text)
        )

    def _num_common(self, left: int, right: int) -> int:
        """Symbols at the beginning that two texts share."""
        known = self._common.get((left, right))
        if known is None:
            known = num_equal(self._texts[left], self._texts[right])
            self._common[left, right] = known
        return known

    def _refusal(self, position: Position, wanted: tuple[int, ...]) -> TokenNotAllowedError:
        """The error for `wanted`, of which a symbol is wrong."""
        rests = [self._texts[number][position.offset :] for number in position.texts]
        agreed = [num_equal(rest, wanted) for rest in rests]
        longest = max(agreed, default=0)
        allowed = {
            rest[longest]
            for rest, length in zip(rests, agreed, strict=True)
            if length == longest < len(rest)
        }
        named = ", ".join(map(str, sorted(allowed)[:MAX_NAMED_TOKENS])) or "no token"
        more = f" and {len(allowed) - MAX_NAMED_TOKENS} more" * (len(allowed) > MAX_NAMED_TOKENS)
        return TokenNotAllowedError(
            f"token {wanted[longest]}, number {longest} of {len(wanted)}, is not allowed; "
            f"allowed there: {named}{more}"
        )


def num_equal(left: Sequence[object], right: Sequence[object]) -> int:
    """How many symbols two texts share at their beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
